//===- FusedProducts.cpp - Products and sums of one rounding --------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fp8/IR/FusedProducts.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;

/// What a kernel computes as a CPU does: an instruction with one rounding, or
/// bits.
static bool isExact(Operation &op) {
  return isa<math::AbsFOp, math::AbsIOp, math::CeilOp, math::CopySignOp,
             math::CountLeadingZerosOp, math::CountTrailingZerosOp,
             math::CtPopOp, math::FloorOp, math::FmaOp, math::IsFiniteOp,
             math::IsInfOp, math::IsNaNOp, math::IsNormalOp, math::RoundEvenOp,
             math::RoundOp, math::SqrtOp, math::TruncOp>(op);
}

bool fp8::fusesProducts(Block &body) {
  return llvm::all_of(body, [](Operation &op) {
    return !isa<math::MathDialect>(op.getDialect()) || isExact(op);
  });
}

/// What a value of the body is a product of, as it was cloned; null if it is
/// none.
static arith::MulFOp getProduct(Value value, Block *body,
                                const IRMapping &mapping) {
  auto argument = dyn_cast<BlockArgument>(value);
  bool isAccumulator = argument && argument.getArgNumber() == 0;
  Operation *product = value.getDefiningOp<arith::MulFOp>();
  if (!isAccumulator && (!product || product->getBlock() != body))
    return {};
  return mapping.lookup(value).getDefiningOp<arith::MulFOp>();
}

static int64_t countUses(Value value) {
  return std::distance(value.use_begin(), value.use_end());
}

Operation *fp8::cloneFused(OpBuilder &b, Operation &op, IRMapping &mapping) {
  bool isSum = isa<arith::AddFOp>(op);
  if ((!isSum && !isa<arith::SubFOp>(op)) || !op.getResult(0).getType().isF32())
    return b.clone(op, mapping);
  Value lhs = op.getOperand(0), rhs = op.getOperand(1);
  arith::MulFOp left = getProduct(lhs, op.getBlock(), mapping),
                right = getProduct(rhs, op.getBlock(), mapping);
  if (!left && !right)
    return b.clone(op, mapping);
  // The one that fewer need, and the first of equals, as LLVM has it.
  bool isLeft = left && (!right || countUses(lhs) <= countUses(rhs));
  arith::MulFOp product = isLeft ? left : right;
  Value x = product.getLhs();
  // A constant around the epilogue stays what it is.
  Value other = mapping.lookupOrDefault(isLeft ? rhs : lhs);
  if (!isSum) {
    Value &negated = isLeft ? other : x;
    negated = arith::NegFOp::create(b, op.getLoc(), negated);
  }
  auto fused = math::FmaOp::create(b, op.getLoc(), x, product.getRhs(), other);
  mapping.map(op.getResult(0), fused.getResult());
  return fused;
}
