//===- StreamSignature.h - Arguments of streams' kernels --------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_KERNELS_STREAM_STREAMSIGNATURE_H
#define FP8_LIB_KERNELS_STREAM_STREAMSIGNATURE_H

#include "../Blocks/KernelSignature.h"
#include "StreamTile.h"

namespace mlir::fp8 {

/// What a kernel of a stream is called with, and how it is launched.
struct StreamSignature {
  SmallVector<StreamArgument> inputs, outputs;
  KernelSignature signature;
  KernelSignature::Launch launch;
};

StreamSignature getStreamSignature(MLIRContext *context, const StreamSpec &spec,
                                   StreamConfigAttr config);

/// Functions that no instruction computes exactly are approximated in all of a
/// kernel.
KernelMath getStreamMath(const StreamSpec &spec);

} // namespace mlir::fp8

#endif // FP8_LIB_KERNELS_STREAM_STREAMSIGNATURE_H
