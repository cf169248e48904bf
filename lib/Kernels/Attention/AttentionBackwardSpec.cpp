//===- AttentionBackwardSpec.cpp - Gradients of attention -----------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttentionBackwardSpec.h"
#include "fp8/IR/Dropout.h"
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
  spec.layout = op.getLayout();
  spec.isDeterministic = !op.getAnyOrder();
  int64_t sequence = op.getSequenceDim(), head = op.getHeadDim();
  ArrayRef<int64_t> q = AttentionOp::getShapeOf(op.getQ());
  ArrayRef<int64_t> k = AttentionOp::getShapeOf(op.getK());
  ArrayRef<int64_t> v = AttentionOp::getShapeOf(op.getV());
  spec.batch = q[0];
  spec.queries = q[sequence];
  spec.keys = k[sequence];
  spec.heads = q[head];
  spec.headsOfK = k[head];
  spec.headDim = q[3];
  spec.headDimOfV = v[3];
  if (spec.heads == 0 || ShapedType::isDynamic(spec.headDim) ||
      ShapedType::isDynamic(spec.headDimOfV))
    return fail("expected static head dimensions and heads, but got {0} and "
                "{1}",
                op.getQ().getType(), op.getV().getType());
  spec.left = op.getLeft();
  spec.right = op.getRight();
  // Numbers of keys are 32 bits with a sign.
  for (std::optional<int64_t> side : {spec.left, spec.right})
    if (side && *side >= (int64_t(1) << 30))
      return fail("expected sides of a window below 2^30, but got {0}", *side);
  spec.bottomRight = op.getBottomRight();
  spec.isScaled = op.isScaled();
  for (Value operand : {op.getQ(), op.getK(), op.getV()})
    if (auto scaled = dyn_cast<ScaledType>(operand.getType());
        scaled && !scaled.isPerTensor())
      return fail("expected a factor for the tensor, but got {0}", scaled);
  spec.scale = op.getSoftmaxScale().convertToFloat();
  if (std::optional<APFloat> cap = op.getCap()) {
    spec.cap = cap->convertToFloat();
    if (*spec.cap > kLargestCap)
      return fail("expected a cap of at most {0}, but got {1}", kLargestCap,
                  *spec.cap);
  }
  spec.hasKeyRanges = op.getKeyRanges() != nullptr;
  spec.dropThreshold = getDropThreshold(op.getRate());
  return spec;
}
