//===- EpilogueRegion.cpp - Elementwise regions in kernels ----------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "EpilogueRegion.h"
#include "Rounding.h"
#include "fp8/IR/FP8Attrs.h"
#include "fp8/IR/FusedProducts.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::fp8;

/// x if `value` is x clamped to +-`limit`, NaN passing, as quantization is
/// spelled: the hardware's cast saturates by itself.
static Value getClampSource(Value value, float limit) {
  auto peel = [](Value clamped, arith::CmpFPredicate beyond,
                 float bound) -> Value {
    auto select = clamped.getDefiningOp<arith::SelectOp>();
    auto compare = select ? select.getCondition().getDefiningOp<arith::CmpFOp>()
                          : arith::CmpFOp();
    FloatAttr constant;
    if (!compare || compare.getPredicate() != beyond ||
        compare.getLhs() != select.getFalseValue() ||
        compare.getRhs() != select.getTrueValue() ||
        !matchPattern(compare.getRhs(), m_Constant(&constant)) ||
        constant.getValueAsDouble() != bound)
      return {};
    return select.getFalseValue();
  };
  using Predicate = arith::CmpFPredicate;
  for (auto [outer, inner, sign] :
       {std::tuple{Predicate::OLT, Predicate::OGT, -1.0f},
        {Predicate::OGT, Predicate::OLT, 1.0f}})
    if (Value half = peel(value, outer, sign * limit))
      if (Value source = peel(half, inner, -sign * limit))
        return source;
  return {};
}

/// The f32 value whose rounding to the result type, saturating for 8-bit
/// types, is what the region yields; null if there is none.
static Value getUnrounded(Type resultType, Value yielded) {
  if (resultType.isF32())
    return yielded;
  auto truncate = yielded.getDefiningOp<arith::TruncFOp>();
  if (!truncate || !truncate.getIn().getType().isF32())
    return {};
  if (resultType.getIntOrFloatBitWidth() != 8)
    return truncate.getIn();
  return getClampSource(truncate.getIn(), getMaxFinite(resultType));
}

LogicalResult EpilogueRegion::check(const Shape &shape, std::string &reason) {
  bool isNarrow = shape.resultType.getIntOrFloatBitWidth() == 8;
  if (!shape.body) {
    if (!isNarrow)
      return success();
    reason = "expected an epilogue that quantizes to the 8-bit result";
    return failure();
  }
  for (Operation &op : shape.body->without_terminator())
    if (op.getNumRegions() != 0 || !isMemoryEffectFree(&op) ||
        !isa<arith::ArithDialect, math::MathDialect>(op.getDialect())) {
      reason = llvm::formatv("expected an epilogue of elementwise arithmetic, "
                             "but got {0}",
                             op.getName());
      return failure();
    }
  Value yielded = shape.body->getTerminator()->getOperand(0);
  if (isNarrow && !getUnrounded(shape.resultType, yielded)) {
    reason = "expected an epilogue that clamps in f32 before it rounds to 8 "
             "bits";
    return failure();
  }
  return success();
}

void fp8::allowContraction(Operation *op) {
  auto fastMath = dyn_cast<arith::ArithFastMathInterface>(op);
  if (!fastMath || !isa<arith::AddFOp, arith::MulFOp, arith::SubFOp>(op))
    return;
  op->setAttr(fastMath.getFastMathAttrName(),
              arith::FastMathFlagsAttr::get(
                  op->getContext(), fastMath.getFastMathFlagsAttr().getValue() |
                                        arith::FastMathFlags::contract));
}

/// What roundAlone makes faster.
static bool isSlowRounding(Operation &op) {
  auto truncate = dyn_cast<arith::TruncFOp>(op);
  return truncate && truncate.getIn().getType().isF32() &&
         isa<BFloat16Type, Float16Type>(truncate.getType());
}

std::pair<Value, Value> EpilogueRegion::round(Value value) {
  if (shape.resultType.isF32())
    return {value, Value()};
  return roundAlone(b, shape.resultType, value);
}

std::pair<Value, Value> EpilogueRegion::inlineOn(Value accumulator,
                                                 ValueRange values) {
  Block *body = shape.body;
  if (!body)
    return {accumulator, Value()};
  IRMapping mapping;
  mapping.map(body->getArgument(0), accumulator);
  mapping.map(body->getArguments().drop_front(), values);
  mapping.map(shape.captures, captures);
  auto get = [&](Value value) {
    // Constants around the op are the only values left unmapped.
    if (!mapping.contains(value) && value.getDefiningOp() &&
        value.getDefiningOp()->getBlock() != body)
      b.clone(*value.getDefiningOp(), mapping);
    return mapping.lookup(value);
  };
  Operation *yield = body->getTerminator();
  bool isFused = fusesProducts(*body);
  SmallVector<Operation *> clones;
  llvm::DenseMap<Value, Value> rounded;
  for (Operation &op : body->without_terminator()) {
    for (Value operand : op.getOperands())
      get(operand);
    if (isa<arith::ExtFOp>(op) && op.getResult(0).getType().isF32()) {
      Value narrow = mapping.lookup(op.getOperand(0));
      Value loaded = widened.lookup(narrow);
      if (Value wide = loaded ? loaded : rounded.lookup(narrow)) {
        mapping.map(op.getResult(0), wide);
        continue;
      }
    }
    if (isSlowRounding(op)) {
      auto [narrow, wide] = roundAlone(b, op.getResult(0).getType(),
                                       mapping.lookup(op.getOperand(0)));
      clones.append({narrow.getDefiningOp()->getOperand(0).getDefiningOp(),
                     narrow.getDefiningOp()});
      mapping.map(op.getResult(0), narrow);
      if (wide) {
        rounded[narrow] = wide;
        clones.push_back(wide.getDefiningOp());
      }
      continue;
    }
    // Where it is said which products go into sums, LLVM finds no others: it
    // looks through signs, which a CPU's kernels do not.
    clones.push_back(isFused ? cloneFused(b, op, mapping)
                             : b.clone(op, mapping));
    if (!isFused)
      allowContraction(clones.back());
  }
  Value yielded = yield->getOperand(0);
  Value measured = shape.isMeasured ? get(yield->getOperand(1)) : Value();
  Value unrounded = getUnrounded(shape.resultType, yielded);
  // A value of the result type as it is: widening and rounding it is exact.
  Value result = unrounded
                     ? get(unrounded)
                     : arith::ExtFOp::create(b, b.getF32Type(), get(yielded));
  // The rounding that the instruction does is left over.
  for (Operation *clone : llvm::reverse(clones)) {
    Value value = clone->getResult(0);
    if (value.use_empty() && value != result && value != measured)
      clone->erase();
  }
  return {result, measured};
}

Value EpilogueRegion::pack(Pair values) {
  Type type = shape.resultType;
  if (type.isF32()) {
    Value vector = LLVM::UndefOp::create(b, VectorType::get({2}, type));
    for (int64_t e = 0; e < 2; ++e)
      vector = LLVM::InsertElementOp::create(b, vector, values[e], b.i32(e));
    return vector;
  }
  // The first operand goes to the upper half.
  if (type.getIntOrFloatBitWidth() == 8)
    return NVVM::ConvertF32x2ToF8x2Op::create(
        b, b.getI16Type(), values[1], values[0], NVVM::FPRoundingMode::RN,
        NVVM::SaturationMode::SATFINITE, /*relu=*/false, type);
  return LLVM::BitcastOp::create(b, b.getI32Type(),
                                 roundPair(b, type, values[0], values[1]));
}
