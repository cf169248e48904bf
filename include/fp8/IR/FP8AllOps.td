//===- FP8AllOps.td - All operations, for their reference --*- tablegen -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_IR_FP8ALLOPS_TD
#define FP8_IR_FP8ALLOPS_TD

include "fp8/IR/FP8AttentionBackwardOp.td"
include "fp8/IR/FP8CollectiveOps.td"
include "fp8/IR/FP8Ops.td"
include "fp8/IR/FP8QuantizedAttentionOp.td"

#endif // FP8_IR_FP8ALLOPS_TD
