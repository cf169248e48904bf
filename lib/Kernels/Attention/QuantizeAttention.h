//===- QuantizeAttention.h - Attention whose result are codes ---*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_KERNELS_ATTENTION_QUANTIZEATTENTION_H
#define FP8_LIB_KERNELS_ATTENTION_QUANTIZEATTENTION_H

#include "fp8/IR/FP8QuantizedAttentionOp.h"

namespace mlir::fp8 {

/// Replaces `op` by attention, a quantization and an amax one after the other;
/// returns the attention.
AttentionOp expandQuantizedAttention(RewriterBase &rewriter,
                                     QuantizedAttentionOp op);

} // namespace mlir::fp8

#endif // FP8_LIB_KERNELS_ATTENTION_QUANTIZEATTENTION_H
