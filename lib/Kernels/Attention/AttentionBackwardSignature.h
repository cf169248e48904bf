//===- AttentionBackwardSignature.h - What its kernels take -----*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_KERNELS_ATTENTION_ATTENTIONBACKWARDSIGNATURE_H
#define FP8_LIB_KERNELS_ATTENTION_ATTENTIONBACKWARDSIGNATURE_H

#include "../Blocks/KernelSignature.h"
#include "AttentionBackwardSpec.h"

namespace mlir::fp8 {

/// The signature of a gradient of attention on any GPU, while it is made.
struct AttentionBackwardSignature {
  const AttentionBackwardSpec &spec;
  KernelSignature signature;
  AffineExpr batch, queries, keys;

  /// With the arguments and extents.
  AttentionBackwardSignature(MLIRContext *context,
                             const AttentionBackwardSpec &spec);

  /// The pointer to a tensor, and the strides of all dimensions but the last.
  void addTensor(StringRef name);
  /// The parameters that all kernels have.
  void addParams();
  /// Those of the definition: a kernel may compute scores twice.
  AffineExpr getFlops() const;
};

} // namespace mlir::fp8

#endif // FP8_LIB_KERNELS_ATTENTION_ATTENTIONBACKWARDSIGNATURE_H
