//===- DecomposeAttentionBackward.h - Its gradients as products -*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_KERNELS_ATTENTION_DECOMPOSEATTENTIONBACKWARD_H
#define FP8_LIB_KERNELS_ATTENTION_DECOMPOSEATTENTIONBACKWARD_H

#include "fp8/IR/FP8AttentionBackwardOp.h"
#include "mlir/IR/PatternMatch.h"

namespace mlir::fp8 {

/// Makes five products and what is between them, in linalg, of `op`.
void decomposeAttentionBackward(RewriterBase &b, AttentionBackwardOp op);

} // namespace mlir::fp8

#endif // FP8_LIB_KERNELS_ATTENTION_DECOMPOSEATTENTIONBACKWARD_H
