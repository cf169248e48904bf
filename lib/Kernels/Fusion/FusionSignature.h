//===- FusionSignature.h - Arguments of fusions' kernels --------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_KERNELS_FUSION_FUSIONSIGNATURE_H
#define FP8_LIB_KERNELS_FUSION_FUSIONSIGNATURE_H

#include "../Blocks/KernelSignature.h"
#include "FusionTile.h"

namespace mlir::fp8 {

/// What a kernel of a fusion is called with, and how it is launched.
struct FusionSignature {
  SmallVector<FusionArgument> inputs, outputs;
  KernelSignature signature;
  KernelSignature::Launch launch;
};

FusionSignature getFusionSignature(MLIRContext *context, const FusionSpec &spec,
                                   FusionConfigAttr config);

/// Functions that no instruction computes exactly are approximated in all of a
/// kernel.
KernelMath getFusionMath(const FusionSpec &spec);

} // namespace mlir::fp8

#endif // FP8_LIB_KERNELS_FUSION_FUSIONSIGNATURE_H
