//===- Epilogue.cpp - Accumulators to results, on fragments ---------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Epilogue.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::fp8;

//===----------------------------------------------------------------------===//
// The region
//===----------------------------------------------------------------------===//

/// x if `value` is x clamped to +-`limit`, NaN passing, as quantisation is
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
static Value getUnrounded(const MatmulSpec &spec, Value yielded) {
  if (spec.resultType.isF32())
    return yielded;
  auto truncate = yielded.getDefiningOp<arith::TruncFOp>();
  if (!truncate || !truncate.getIn().getType().isF32())
    return {};
  if (spec.resultType.getIntOrFloatBitWidth() != 8)
    return truncate.getIn();
  return getClampSource(truncate.getIn(), getMaxFinite(spec.resultType));
}

LogicalResult Epilogue::check(const MatmulSpec &spec, std::string &reason) {
  if (!spec.epilogue) {
    if (spec.resultType.getIntOrFloatBitWidth() == 8) {
      reason = "expected an epilogue that quantises to the 8-bit result";
      return failure();
    }
    return success();
  }
  for (Operation &op : spec.epilogue->without_terminator())
    if (op.getNumRegions() != 0 || !isMemoryEffectFree(&op) ||
        !isa<arith::ArithDialect, math::MathDialect>(op.getDialect())) {
      reason = llvm::formatv("expected an epilogue of elementwise arithmetic, "
                             "but got {0}",
                             op.getName());
      return failure();
    }
  Value yielded = spec.epilogue->getTerminator()->getOperand(0);
  if (spec.resultType.getIntOrFloatBitWidth() == 8 &&
      !getUnrounded(spec, yielded)) {
    reason = "expected an epilogue that clamps in f32 before it rounds to 8 "
             "bits";
    return failure();
  }
  return success();
}

/// A product and a sum may be one instruction, with one rounding less.
static void allowContraction(Operation *op) {
  auto fastMath = dyn_cast<arith::ArithFastMathInterface>(op);
  if (!fastMath || !isa<arith::AddFOp, arith::MulFOp, arith::SubFOp>(op))
    return;
  op->setAttr(fastMath.getFastMathAttrName(),
              arith::FastMathFlagsAttr::get(
                  op->getContext(), fastMath.getFastMathFlagsAttr().getValue() |
                                        arith::FastMathFlags::contract));
}

std::pair<Value, Value> Epilogue::inlineRegion(Value accumulator,
                                               ValueRange values) {
  if (!spec.epilogue)
    return {accumulator, Value()};
  IRMapping mapping;
  mapping.map(spec.epilogue->getArgument(0), accumulator);
  mapping.map(spec.epilogue->getArguments().drop_front(), values);
  mapping.map(spec.captures, captures);
  auto get = [&](Value value) {
    // Constants around the op are the only values left unmapped.
    if (!mapping.contains(value) && value.getDefiningOp() &&
        value.getDefiningOp()->getBlock() != spec.epilogue)
      b.clone(*value.getDefiningOp(), mapping);
    return mapping.lookup(value);
  };
  Operation *yield = spec.epilogue->getTerminator();
  for (Operation &op : spec.epilogue->without_terminator()) {
    for (Value operand : op.getOperands())
      get(operand);
    if (isa<arith::ExtFOp>(op) && op.getResult(0).getType().isF32())
      if (Value wide = widened.lookup(mapping.lookup(op.getOperand(0)))) {
        mapping.map(op.getResult(0), wide);
        continue;
      }
    allowContraction(b.clone(op, mapping));
  }
  Value yielded = yield->getOperand(0);
  Value measured = spec.amax ? get(yield->getOperand(1)) : Value();
  if (Value unrounded = getUnrounded(spec, yielded))
    return {get(unrounded), measured};
  // A value of the result type as it is: widening and rounding it is exact.
  return {arith::ExtFOp::create(b, b.getF32Type(), get(yielded)), measured};
}

//===----------------------------------------------------------------------===//
// Loads
//===----------------------------------------------------------------------===//

Epilogue::Epilogue(KernelBuilder &b, const MatmulSpec &spec, Value m, Value n,
                   bool vectorLoads)
    : b(b), spec(spec), m(m), n(n), vectorLoads(vectorLoads) {
  if (!spec.amax)
    return;
  // LLVM looks for slots that can be registers in the entry block only.
  OpBuilder::InsertionGuard guard(b);
  auto function =
      b.getInsertionBlock()->getParent()->getParentOfType<LLVM::LLVMFuncOp>();
  b.setInsertionPointToStart(&function.getBody().front());
  amaxSlot = LLVM::AllocaOp::create(
      b, LLVM::LLVMPointerType::get(b.getContext()), b.getF32Type(), b.i32(1));
}

void Epilogue::setFactors(std::optional<FragmentSource> a,
                          std::optional<FragmentSource> b) {
  factorA.reset();
  factorB.reset();
  operands.clear();
  widened.clear();
  if (a)
    factorA = Loaded(*a);
  if (b)
    factorB = Loaded(*b);
}

void Epilogue::beginWave(Fragment newFragment) {
  fragment = newFragment;
  rowAmax = Pair();
  // What was loaded stays valid only if it does not depend on the rows; a
  // column's values would hold registers through the other waves.
  auto forget = [&](Loaded &loaded) {
    if (!loaded.isWholeTile && (loaded.source.alongM || loaded.source.alongN))
      loaded.cache.clear();
  };
  for (Loaded &operand : operands)
    forget(operand);
  if (factorA)
    forget(*factorA);
  if (factorB)
    forget(*factorB);
}

void Epilogue::loadColumns(Value col, int64_t groups) {
  // Each pair is in a register until the tile is stored.
  int64_t registersLeft = 32;
  for (Loaded &operand : operands) {
    const FragmentSource &source = operand.source;
    if (!vectorLoads || !source.alongN || source.alongM ||
        source.elementType.getIntOrFloatBitWidth() > 16 ||
        (registersLeft -= groups) < 0)
      continue;
    // Where all are in the result, one address serves them.
    Value isInside = b.less(b.add(col, 8 * groups - 8), n);
    SmallVector<Value> loaded = b.choose(
        isInside, [&] { return loadPairs(source, col, groups); },
        [&] { return loadClamped(source, col, groups); });
    for (auto [j, both] : llvm::enumerate(loaded))
      operand.cache[{j, -1}] = split(both, source.elementType);
    operand.isWholeTile = true;
  }
}

SmallVector<Value> Epilogue::loadPairs(const FragmentSource &source, Value col,
                                       int64_t groups) {
  unsigned width = source.elementType.getIntOrFloatBitWidth();
  Value first = b.element(source.pointer, b.widen(col), source.elementType);
  SmallVector<Value> pairs;
  for (int64_t j = 0; j < groups; ++j)
    pairs.push_back(b.loadConstant(b.offset(first, b.i64(j * width)),
                                   b.getIntegerType(2 * width)));
  return pairs;
}

/// One by one: loads of the same type as the others' would be made one sequence
/// with them by LLVM, with an address for each.
SmallVector<Value> Epilogue::loadClamped(const FragmentSource &source,
                                         Value col, int64_t groups) {
  unsigned width = source.elementType.getIntOrFloatBitWidth();
  Type pair = b.getIntegerType(2 * width);
  auto loadAt = [&](Value col) -> Value {
    Value index = b.widen(b.min(col, b.sub(n, b.i32(1))));
    Value element =
        b.loadConstant(b.element(source.pointer, index, source.elementType),
                       b.getIntegerType(width));
    return arith::ExtUIOp::create(b, pair, element);
  };
  Value shift = arith::ConstantOp::create(b, b.getIntegerAttr(pair, width));
  SmallVector<Value> pairs;
  for (int64_t j = 0; j < groups; ++j) {
    Value low = loadAt(b.add(col, 8 * j)), high = loadAt(b.add(col, 8 * j + 1));
    pairs.push_back(
        arith::OrIOp::create(b, low, arith::ShLIOp::create(b, high, shift)));
  }
  return pairs;
}

Pair Epilogue::split(Value both, Type element) {
  unsigned width = element.getIntOrFloatBitWidth();
  Pair values;
  for (int64_t e = 0; e < 2; ++e)
    values[e] = arith::BitcastOp::create(
        b, element,
        arith::TruncIOp::create(b, b.getIntegerType(width),
                                b.shiftRight(both, e * width)));
  // The bits of a bf16 are the upper half of those of the same f32: one
  // instruction each, which LLVM does not find.
  if (element.isBF16()) {
    Value bits[] = {arith::ShLIOp::create(b, both, b.i32(16)),
                    b.bitAnd(both, 0xffff0000)};
    for (int64_t e = 0; e < 2; ++e)
      widened[values[e]] = arith::BitcastOp::create(b, b.getF32Type(), bits[e]);
  }
  return values;
}

Value Epilogue::isInside(int64_t j, int64_t e) {
  Value cols = fragment.swapped ? m : n;
  Value left = b.sub(cols, b.min(fragment.col, cols));
  return b.less(b.i32(8 * j + e), left);
}

Pair Epilogue::load(Loaded &loaded, int64_t j, int64_t h) {
  const FragmentSource &source = loaded.source;
  bool alongRow = fragment.swapped ? source.alongN : source.alongM;
  bool alongCol = fragment.swapped ? source.alongM : source.alongN;
  auto [entry, isNew] =
      loaded.cache.try_emplace({alongCol ? j : -1, alongRow ? h : -1}, Pair());
  if (!isNew)
    return entry->second;

  Type stored = source.elementType;
  if (stored.getIntOrFloatBitWidth() == 8)
    stored = b.getI8Type();
  bool isVector = vectorLoads && alongCol && !fragment.swapped;
  auto clampTo = [&](Value index, Value extent, int64_t last) {
    return b.min(index, b.sub(extent, b.i32(last)));
  };
  auto address = [&](int64_t e) {
    Value row = fragment.getRow(b, h), col = fragment.getCol(b, j, e);
    Value indexM = fragment.swapped ? col : row;
    Value indexN = fragment.swapped ? row : col;
    Value index = b.i64(0);
    if (source.alongM)
      index = b.mul(b.widen(clampTo(indexM, m, 1)), source.strideM);
    if (source.alongN)
      index = b.add(index, b.widen(clampTo(indexN, n, isVector ? 2 : 1)));
    return b.element(source.pointer, index, source.elementType);
  };
  Pair values;
  if (isVector) {
    Value both = b.loadConstant(address(0), VectorType::get({2}, stored));
    for (int64_t e = 0; e < 2; ++e)
      values[e] = LLVM::ExtractElementOp::create(b, both, b.i32(e));
  } else {
    values[0] = b.loadConstant(address(0), stored);
    values[1] = alongCol ? b.loadConstant(address(1), stored) : values[0];
  }
  if (stored != source.elementType)
    for (Value &value : values)
      value = arith::BitcastOp::create(b, source.elementType, value);
  return loaded.cache[{alongCol ? j : -1, alongRow ? h : -1}] = values;
}

Pair Epilogue::getFactor(int64_t j, int64_t h) {
  if (!factorA)
    return load(*factorB, j, h);
  if (!factorB)
    return load(*factorA, j, h);
  Pair a = load(*factorA, j, h), other = load(*factorB, j, h);
  return {b.mulF(a[0], other[0]), b.mulF(a[1], other[1])};
}

//===----------------------------------------------------------------------===//
// Evaluation
//===----------------------------------------------------------------------===//

Value Epilogue::evaluate(int64_t j, int64_t h, Pair accumulators) {
  if (factorA || factorB) {
    Pair factor = getFactor(j, h);
    for (int64_t e = 0; e < 2; ++e) {
      accumulators[e] = b.mulF(accumulators[e], factor[e]);
      allowContraction(accumulators[e].getDefiningOp());
    }
  }
  SmallVector<Pair> loaded;
  for (Loaded &operand : operands)
    loaded.push_back(load(operand, j, h));
  Pair results, measured;
  for (int64_t e = 0; e < 2; ++e) {
    SmallVector<Value> values;
    for (Pair &pair : loaded)
      values.push_back(pair[e]);
    std::tie(results[e], measured[e]) = inlineRegion(accumulators[e], values);
  }
  if (spec.amax)
    measure(j, h, measured);
  return pack(results);
}

Value Epilogue::pack(Pair values) {
  Type type = spec.resultType;
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
  Type vectorType = VectorType::get({2}, type);
  Value vector;
  if (type.isBF16())
    vector = NVVM::ConvertF32x2ToBF16x2Op::create(
        b, vectorType, values[1], values[0], /*random_bits=*/Value(),
        NVVM::FPRoundingMode::RN);
  else
    vector = NVVM::ConvertF32x2ToF16x2Op::create(
        b, vectorType, values[1], values[0], /*random_bits=*/Value(),
        NVVM::FPRoundingMode::RN);
  return LLVM::BitcastOp::create(b, b.getI32Type(), vector);
}

//===----------------------------------------------------------------------===//
// Amax
//===----------------------------------------------------------------------===//

void Epilogue::resetAmax() { b.store(b.f32(0.0f), amaxSlot); }

/// maxnum ignores NaN, as fp8.amax does.
static Value getMax(KernelBuilder &b, Value lhs, Value rhs) {
  return arith::MaxNumFOp::create(b, lhs, rhs);
}

void Epilogue::measure(int64_t j, int64_t h, Pair values) {
  // Columns are masked one by one, or in pairs where there is an even number;
  // rows only at the end.
  Value &sofar = rowAmax[h];
  if (!sofar)
    sofar = b.f32(0.0f);
  // The choice of what to keep is a predicate on the maximum, not an
  // instruction.
  auto include = [&](int64_t e, Value magnitude) {
    sofar = b.select(isInside(j, e), getMax(b, sofar, magnitude), sofar);
  };
  Value magnitudes[] = {math::AbsFOp::create(b, values[0]),
                        math::AbsFOp::create(b, values[1])};
  if (vectorLoads && !fragment.swapped)
    return include(0, getMax(b, magnitudes[0], magnitudes[1]));
  for (int64_t e = 0; e < 2; ++e)
    include(e, magnitudes[e]);
}

void Epilogue::endWave() {
  if (!spec.amax)
    return;
  Value sofar = b.load(amaxSlot, b.getF32Type());
  for (int64_t h = 0; h < 2; ++h) {
    Value inside = b.less(fragment.getRow(b, h), fragment.swapped ? n : m);
    sofar = getMax(b, sofar, b.select(inside, rowAmax[h], b.f32(0.0f)));
  }
  b.store(sofar, amaxSlot);
}

void Epilogue::storeAmax(Value pointer, Value lane) {
  // Floats that are not negative order as their bits do.
  Value bits = arith::BitcastOp::create(b, b.getI32Type(),
                                        b.load(amaxSlot, b.getF32Type()));
  Value largest = NVVM::ReduxOp::create(b, b.getI32Type(), bits,
                                        NVVM::ReduxKind::UMAX, b.i32(-1));
  b.ifThen(b.equal(lane, 0), [&] {
    LLVM::AtomicRMWOp::create(b, LLVM::AtomicBinOp::umax, pointer, largest,
                              LLVM::AtomicOrdering::monotonic);
  });
}
