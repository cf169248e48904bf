//===- FP8QuantizedAttentionOp.h - Codes of attention -----------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// By itself: few files need it, and FP8Ops.h is in nearly all.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_IR_FP8QUANTIZEDATTENTIONOP_H
#define FP8_IR_FP8QUANTIZEDATTENTIONOP_H

#include "fp8/IR/FP8Ops.h"

#define GET_OP_CLASSES
#include "fp8/IR/FP8QuantizedAttentionOp.h.inc"

#endif // FP8_IR_FP8QUANTIZEDATTENTIONOP_H
