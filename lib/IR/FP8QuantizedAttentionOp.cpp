//===- FP8QuantizedAttentionOp.cpp - Codes of attention -------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fp8/IR/FP8QuantizedAttentionOp.h"
#include "fp8/IR/FP8Dialect.h"

using namespace mlir;
using namespace mlir::fp8;

AttentionOp QuantizedAttentionOp::getAttention() {
  return cast<AttentionOp>(getBody().front().front());
}

LogicalResult QuantizedAttentionOp::verifyRegions() {
  // quantized_attention_c1
  Block &block = getBody().front();
  auto attention = dyn_cast<AttentionOp>(block.front());
  if (!attention || block.getOperations().size() != 2 ||
      !isa<AttentionYieldOp>(block.back()) ||
      block.back().getOperands() != attention->getResults())
    return emitOpError("expected the body to have one 'fp8.attention' and to "
                       "yield its results");
  // quantized_attention_c2
  auto output = cast<RankedTensorType>(attention.getOutput().getType());
  auto codes = cast<RankedTensorType>(getCodes().getType());
  if (codes.getShape() != output.getShape())
    return emitOpError("expected codes of the shape of ")
           << output << ", but got " << codes;
  // quantized_attention_c3
  if (output.getElementType().isF32())
    return emitOpError("expected a result of 'fp8.attention' of bf16 or f16, "
                       "but got ")
           << output;
  // quantized_attention_c4
  RankedTensorType scale = getScale().getType();
  if (llvm::any_of(scale.getShape(), [](int64_t size) { return size != 1; }))
    return emitOpError("expected scale to have one element, but got ") << scale;
  if (getAmax() && getAmax().getType() != scale)
    return emitOpError("expected amax to be ")
           << scale << ", as scale is, but got " << getAmax().getType();
  // quantized_attention_c5
  Value lse = attention.getLse();
  bool areSame =
      lse && getLse() ? lse.getType() == getLse().getType() : !lse && !getLse();
  if (!areSame)
    return emitOpError("expected lse to be that of the 'fp8.attention', if it "
                       "has one");
  return success();
}

#define GET_OP_CLASSES
#include "fp8/IR/FP8QuantizedAttentionOp.cpp.inc"
