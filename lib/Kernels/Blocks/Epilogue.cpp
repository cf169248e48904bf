//===- Epilogue.cpp - What becomes of the sums of a tile ------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Epilogue.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace mlir::fp8;

//===----------------------------------------------------------------------===//
// Loads
//===----------------------------------------------------------------------===//

Epilogue::Epilogue(KernelBuilder &b, EpilogueRegion::Shape shape,
                   FragmentLayout layout, bool vectorLoads)
    : b(b), region(b, shape), isMeasured(shape.isMeasured),
      layout(std::move(layout)), vectorLoads(vectorLoads) {
  if (!isMeasured)
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
  region.clearWidened();
  if (a)
    factorA = Loaded(*a);
  if (b)
    factorB = Loaded(*b);
}

void Epilogue::setFirst(EpilogueRegion::Shape shape, size_t numOperands,
                        size_t position) {
  first.emplace(
      First{EpilogueRegion(b, shape), numOperands, position, std::nullopt});
}

void Epilogue::setFirstFactor(std::optional<FragmentSource> b) {
  first->region.clearWidened();
  first->factorB.reset();
  if (b)
    first->factorB = Loaded(*b);
}

void Epilogue::setCaptures(ValueRange values) {
  region.setCaptures(values);
  if (first)
    first->region.setCaptures(values);
}

void Epilogue::beginSubtile(Fragment newFragment) {
  fragment = newFragment;
  rowAmax.assign(layout.rows.size(), Value());
  // What was loaded stays valid only if it does not depend on the rows; a
  // column's values would hold registers through the other subtiles.
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
  if (first && first->factorB)
    forget(*first->factorB);
}

void Epilogue::loadColumns(Value col) {
  SmallVector<int64_t> offsets = layout.getCols();
  // Each pair is in a register until the tile is stored.
  int64_t registersLeft = 32;
  for (Loaded &operand : operands) {
    const FragmentSource &source = operand.source;
    if (!vectorLoads || !source.alongN || source.alongM ||
        source.elementType.getIntOrFloatBitWidth() > 16 ||
        source.elementType.isInteger(1) ||
        (registersLeft -= static_cast<int64_t>(offsets.size())) < 0)
      continue;
    // Where all are in the result, one address serves them.
    Value isInside = b.less(b.add(col, offsets.back()), n);
    SmallVector<Value> loaded = b.choose(
        isInside, [&] { return loadPairs(source, col, offsets); },
        [&] { return loadClamped(source, col, offsets); });
    for (auto [offset, both] : llvm::zip_equal(offsets, loaded))
      operand.cache[{offset, -1}] = split(both, source.elementType);
    operand.isWholeTile = true;
  }
}

void Epilogue::prefetch(Value row, Value col) {
  auto getPlace = [&](const FragmentSource &source) -> Value {
    if (source.alongN)
      return b.element(source.pointer, b.widen(b.min(col, b.sub(n, b.i32(1)))),
                       source.elementType);
    if (!source.alongM)
      return source.pointer;
    Value index = b.widen(b.min(row, b.sub(m, b.i32(1))));
    return b.element(source.pointer, b.mul(index, source.strideM),
                     source.elementType);
  };
  auto prefetchOne = [&](const FragmentSource &source) {
    if ((source.alongM && source.alongN) || source.elementType.isInteger(1))
      return;
    NVVM::PrefetchOp::create(b,
                             NVVM::PrefetchCacheLevelAttr::get(
                                 b.getContext(), NVVM::PrefetchCacheLevel::L1),
                             /*evictPriority=*/nullptr, getPlace(source),
                             /*predicate=*/Value());
  };
  for (const std::optional<Loaded> &factor : {factorA, factorB})
    if (factor)
      prefetchOne(factor->source);
  for (const Loaded &operand : operands)
    prefetchOne(operand.source);
}

SmallVector<Value> Epilogue::loadPairs(const FragmentSource &source, Value col,
                                       ArrayRef<int64_t> offsets) {
  unsigned width = source.elementType.getIntOrFloatBitWidth();
  Value first = b.element(source.pointer, b.widen(col), source.elementType);
  SmallVector<Value> pairs;
  for (int64_t offset : offsets)
    pairs.push_back(b.loadConstant(b.offset(first, b.i64(offset * width / 8)),
                                   b.getIntegerType(2 * width)));
  return pairs;
}

/// One by one: loads of the same type as the others' would be made one sequence
/// with them by LLVM, with an address for each.
SmallVector<Value> Epilogue::loadClamped(const FragmentSource &source,
                                         Value col, ArrayRef<int64_t> offsets) {
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
  for (int64_t offset : offsets) {
    Value low = loadAt(b.add(col, offset)),
          high = loadAt(b.add(col, offset + 1));
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
      region.setWidened(values[e],
                        arith::BitcastOp::create(b, b.getF32Type(), bits[e]));
  }
  return values;
}

Value Epilogue::isInside(int64_t col, int64_t e) {
  Value cols = fragment.swapped ? m : n;
  Value left = b.sub(cols, b.min(fragment.col, cols));
  return b.less(b.i32(col + e), left);
}

Pair Epilogue::load(Loaded &loaded, FragmentLayout::Place place) {
  const FragmentSource &source = loaded.source;
  bool alongRow = fragment.swapped ? source.alongN : source.alongM;
  bool alongCol = fragment.swapped ? source.alongM : source.alongN;
  std::pair<int64_t, int64_t> key{alongCol ? place.col : -1,
                                  alongRow ? place.row : -1};
  auto [entry, isNew] = loaded.cache.try_emplace(key, Pair());
  if (!isNew)
    return entry->second;

  Type stored = source.elementType;
  bool isBit = stored.isInteger(1);
  if (stored.getIntOrFloatBitWidth() == 8 || isBit)
    stored = b.getI8Type();
  bool isVector = vectorLoads && alongCol && !fragment.swapped;
  auto clampTo = [&](Value index, Value extent, int64_t last) {
    return b.min(index, b.sub(extent, b.i32(last)));
  };
  auto address = [&](int64_t e) {
    Value row = fragment.getRow(b, layout, place.row);
    Value col = fragment.getCol(b, place.col, e);
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
      value = isBit ? arith::TruncIOp::create(b, source.elementType, value)
                          .getResult()
                    : arith::BitcastOp::create(b, source.elementType, value)
                          .getResult();
  return loaded.cache[key] = values;
}

Pair Epilogue::scale(Pair accumulators, std::optional<Loaded> &ofB,
                     FragmentLayout::Place place) {
  if (!factorA && !ofB)
    return accumulators;
  Pair factor = load(factorA ? *factorA : *ofB, place);
  if (factorA && ofB) {
    Pair other = load(*ofB, place);
    factor = {b.mulF(factor[0], other[0]), b.mulF(factor[1], other[1])};
  }
  for (int64_t e = 0; e < 2; ++e) {
    accumulators[e] = b.mulF(accumulators[e], factor[e]);
    allowContraction(accumulators[e].getDefiningOp());
  }
  return accumulators;
}

//===----------------------------------------------------------------------===//
// Evaluation
//===----------------------------------------------------------------------===//

Value Epilogue::evaluate(int64_t pair, Pair accumulators, Pair ofFirst) {
  FragmentLayout::Place place = layout.pairs[pair];
  accumulators = scale(accumulators, factorB, place);
  if (first)
    ofFirst = scale(ofFirst, first->factorB, place);
  SmallVector<Pair> loaded;
  for (Loaded &operand : operands)
    loaded.push_back(load(operand, place));
  Pair results, measured;
  for (int64_t e = 0; e < 2; ++e) {
    SmallVector<Value> values;
    for (Pair &pair : loaded)
      values.push_back(pair[e]);
    if (first) {
      ArrayRef<Value> all = values;
      Value unrounded =
          first->region.inlineOn(ofFirst[e], all.take_front(first->numOperands))
              .first;
      auto [value, wide] = first->region.round(unrounded);
      if (wide)
        region.setWidened(value, wide);
      SmallVector<Value> own(all.drop_front(first->numOperands));
      own.insert(own.begin() + first->position, value);
      values = std::move(own);
    }
    std::tie(results[e], measured[e]) =
        region.inlineOn(accumulators[e], values);
  }
  if (isMeasured)
    measure(place, measured);
  return region.pack(results);
}

//===----------------------------------------------------------------------===//
// Amax
//===----------------------------------------------------------------------===//

void Epilogue::setExtents(Value m, Value n) {
  this->m = m;
  this->n = n;
}

void Epilogue::resetAmax() { b.store(b.f32(0.0f), amaxSlot); }

/// maxnum ignores NaN, as fp8.amax does.
static Value getMax(KernelBuilder &b, Value lhs, Value rhs) {
  return arith::MaxNumFOp::create(b, lhs, rhs);
}

void Epilogue::measure(FragmentLayout::Place place, Pair values) {
  // Columns are masked one by one, or in pairs where there is an even number;
  // rows only at the end.
  Value &sofar = rowAmax[place.row];
  if (!sofar)
    sofar = b.f32(0.0f);
  // The choice of what to keep is a predicate on the maximum, not an
  // instruction.
  auto include = [&](int64_t e, Value magnitude) {
    sofar =
        b.select(isInside(place.col, e), getMax(b, sofar, magnitude), sofar);
  };
  Value magnitudes[] = {math::AbsFOp::create(b, values[0]),
                        math::AbsFOp::create(b, values[1])};
  if (vectorLoads && !fragment.swapped)
    return include(0, getMax(b, magnitudes[0], magnitudes[1]));
  for (int64_t e = 0; e < 2; ++e)
    include(e, magnitudes[e]);
}

void Epilogue::endSubtile() {
  if (!isMeasured)
    return;
  Value sofar = b.load(amaxSlot, b.getF32Type());
  for (auto [number, amax] : llvm::enumerate(rowAmax)) {
    Value inside =
        b.less(fragment.getRow(b, layout, number), fragment.swapped ? n : m);
    sofar = getMax(b, sofar, b.select(inside, amax, b.f32(0.0f)));
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
