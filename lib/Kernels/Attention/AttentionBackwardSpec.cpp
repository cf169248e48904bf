//===- AttentionBackwardSpec.cpp - Gradients of attention -----------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttentionBackwardSpec.h"
#include "ReadAttentionShape.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::fp8;

std::string AttentionBackwardSpec::describe() const {
  std::string text;
  llvm::raw_string_ostream os(text);
  describeShape(os);
  if (hasKeyRanges)
    os << " ranges";
  os << " grad " << grad;
  if (!isDeterministic)
    os << " any order";
  return text;
}

std::string AttentionBackwardSpec::getLabel() const {
  std::string label;
  llvm::raw_string_ostream os(label);
  os << (isScaled ? "f8" : q.isBF16() ? "bf16" : "f16") << "_d" << headDim;
  if (isCausal())
    os << "_causal";
  else if (left || right)
    os << "_window";
  if (!isDeterministic)
    os << "_any";
  return label;
}

FailureOr<AttentionBackwardSpec>
AttentionBackwardSpec::get(AttentionBackwardOp op, std::string &reason) {
  auto fail = [&](const auto &...parts) {
    reason = llvm::formatv(parts...);
    return failure();
  };
  AttentionBackwardSpec spec;
  spec.q = AttentionOp::getElementTypeOf(op.getQ());
  spec.k = AttentionOp::getElementTypeOf(op.getK());
  spec.v = AttentionOp::getElementTypeOf(op.getV());
  spec.grad = op.getGrad().getType().getElementType();
  if (!spec.grad.isBF16() && !spec.grad.isF16())
    return fail("expected gradients of bf16 or f16, but got {0}", spec.grad);
  spec.isDeterministic = !op.getAnyOrder();
  int64_t keys = AttentionOp::getShapeOf(op.getK())[op.getSequenceDim()];
  if (failed(readExtents(spec, op, keys, reason)))
    return failure();
  spec.bottomRight = op.getBottomRight();
  spec.isScaled = op.isScaled();
  for (Value operand : {op.getQ(), op.getK(), op.getV()})
    if (auto scaled = dyn_cast<ScaledType>(operand.getType());
        scaled && !scaled.isPerTensor())
      return fail("expected a factor for the tensor, but got {0}", scaled);
  if (failed(readScores(spec, op, reason)))
    return failure();
  spec.hasKeyRanges = op.getKeyRanges() != nullptr;
  return spec;
}
