//===- Combiner.cpp - What a reduction does with two of its terms ---------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Combiner.h"
#include "LaunchBuilder.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"

using namespace mlir;
using namespace mlir::fp8;

static Value skipCasts(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (!isa<arith::ExtFOp, arith::TruncFOp>(op))
      break;
    value = op->getOperand(0);
  }
  return value;
}

/// What changes nothing; of sums the zero that keeps another one's sign.
static TypedAttr getNeutral(Operation *op, Type type) {
  if (isa<arith::AddFOp>(op))
    return FloatAttr::get(
        type, APFloat::getZero(cast<FloatType>(type).getFloatSemantics(),
                               /*Negative=*/true));
  if (!isa<arith::AddIOp, arith::MulFOp, arith::MulIOp, arith::MaximumFOp,
           arith::MinimumFOp, arith::MaxSIOp, arith::MinSIOp, arith::MaxUIOp,
           arith::MinUIOp, arith::AndIOp, arith::OrIOp, arith::XOrIOp>(op) ||
      op->getResult(0).getType() != type)
    return {};
  return arith::getNeutralElement(op).value_or(TypedAttr());
}

bool Combiner::hasOrder() const {
  return isa<arith::AddFOp, arith::MulFOp>(operation);
}

std::optional<Combiner> Combiner::get(linalg::LinalgOp op) {
  if (op.getNumDpsInits() != 1 || op.getNumReductionLoops() == 0)
    return std::nullopt;
  BlockArgument carried = op.getMatchingBlockArgument(op.getDpsInitOperand(0));
  Type type = carried.getType();
  Operation *last =
      skipCasts(op.getBlock()->getTerminator()->getOperand(0)).getDefiningOp();
  if (!last || last->getBlock() != op.getBlock() || !carried.hasOneUse() ||
      last->getNumOperands() != 2 || last->getNumRegions() != 0 ||
      !(type.isIndex() || isa<IntegerType, FloatType>(type)))
    return std::nullopt;
  // What is carried goes to the one side, and the term does not depend on it.
  if (llvm::none_of(last->getOperands(), [&](Value operand) {
        return skipCasts(operand) == carried;
      }))
    return std::nullopt;
  TypedAttr neutral = getNeutral(last, type);
  if (!neutral)
    return std::nullopt;
  return Combiner(last, type, neutral);
}

Type Combiner::getWideType() const {
  bool isNarrow = isa<FloatType>(type) && type.getIntOrFloatBitWidth() < 32 &&
                  isa<arith::AddFOp, arith::MulFOp>(operation);
  return isNarrow ? Type(Float32Type::get(type.getContext())) : type;
}

Value Combiner::createNeutral(OpBuilder &b, Location loc) const {
  return arith::ConstantOp::create(b, loc, neutral);
}

Value Combiner::widen(OpBuilder &b, Location loc, Value value) const {
  return value.getType() == getWideType()
             ? value
             : arith::ExtFOp::create(b, loc, getWideType(), value).getResult();
}

Value Combiner::narrow(OpBuilder &b, Location loc, Value value) const {
  return value.getType() == type
             ? value
             : arith::TruncFOp::create(b, loc, type, value).getResult();
}

Value Combiner::combine(OpBuilder &b, Location loc, Value lhs,
                        Value rhs) const {
  OperationState state(loc, operation->getName());
  state.addOperands({lhs, rhs});
  state.addTypes(lhs.getType());
  state.propertiesAttr = operation->getPropertiesAsAttribute();
  return b.create(state)->getResult(0);
}

/// Lanes exchange 32 bits at a time.
Value Combiner::shuffle(OpBuilder &b, Location loc, Value value,
                        int64_t distance) const {
  auto exchange = [&](Value word) {
    return gpu::ShuffleOp::create(b, loc, word, distance, kWarpSize,
                                  gpu::ShuffleMode::XOR)
        .getShuffleResult();
  };
  Type from = value.getType();
  if (from.isF32() || from.isInteger(32))
    return exchange(value);
  unsigned bits = from.isIndex() ? 64 : from.getIntOrFloatBitWidth();
  Type whole = b.getIntegerType(bits);
  Type words = b.getIntegerType(llvm::alignTo(bits, 32));
  if (from.isIndex())
    value = arith::IndexCastOp::create(b, loc, whole, value);
  else if (from != whole)
    value = arith::BitcastOp::create(b, loc, whole, value);
  if (whole != words)
    value = arith::ExtUIOp::create(b, loc, words, value);
  Value result;
  for (unsigned begin = 0; begin < bits; begin += 32) {
    Value word = value;
    Value place =
        arith::ConstantOp::create(b, loc, b.getIntegerAttr(words, begin));
    if (bits > 32)
      word = arith::TruncIOp::create(
          b, loc, b.getI32Type(), arith::ShRUIOp::create(b, loc, value, place));
    word = exchange(word);
    if (bits > 32)
      word = arith::ShLIOp::create(
          b, loc, arith::ExtUIOp::create(b, loc, words, word), place);
    result =
        result ? arith::OrIOp::create(b, loc, result, word).getResult() : word;
  }
  if (whole != words)
    result = arith::TruncIOp::create(b, loc, whole, result);
  if (from.isIndex())
    return arith::IndexCastOp::create(b, loc, from, result);
  return from == whole
             ? result
             : arith::BitcastOp::create(b, loc, from, result).getResult();
}
