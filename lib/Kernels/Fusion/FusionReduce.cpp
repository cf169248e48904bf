//===- FusionReduce.cpp - Reductions of a fusion --------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
// Of a thread's elements, then between its lane and others by shuffles, then
// between warps through shared memory, always in the same order.

#include "FusionValues.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace mlir::fp8;

static constexpr int64_t kWhole = ScaledType::kWhole;

/// The bits of a number's magnitude: their order is that of the magnitudes, and
/// a NaN is above all.
static Value getMagnitudeBits(KernelBuilder &b, Value value) {
  return b.bitAnd(arith::BitcastOp::create(b, b.getI32Type(), value),
                  0x7fffffff);
}

Value FusionValues::allocate(int64_t bytes) {
  Value space = b.offset(scratch, b.i32(scratchUsed));
  scratchUsed += llvm::alignTo(bytes, 16);
  return space;
}

Value FusionValues::getIdentity(const Combiner &combiner) {
  switch (combiner.kind) {
  case Combiner::Bits:
  case Combiner::Words:
    return b.i32(0);
  case Combiner::Sum:
  case Combiner::Magnitude:
    return b.f32(0.0f);
  default:
    return b.f32(-std::numeric_limits<float>::infinity());
  }
}

Value FusionValues::combine(const Combiner &combiner, Value lhs, Value rhs) {
  switch (combiner.kind) {
  case Combiner::Sum:
    return arith::AddFOp::create(b, lhs, rhs);
  case Combiner::Maximum:
    return arith::MaximumFOp::create(b, lhs, rhs);
  case Combiner::MaxNum:
  case Combiner::Magnitude:
    return arith::MaxNumFOp::create(b, lhs, rhs);
  case Combiner::Bits:
    return arith::MaxUIOp::create(b, lhs, rhs);
  case Combiner::Words:
    break;
  }
  // NaN is above Inf as an integer, and gives way to any number as a float.
  auto pair = VectorType::get({2}, combiner.propagatesNaN ? Type(b.getI16Type())
                                                          : combiner.element);
  lhs = LLVM::BitcastOp::create(b, pair, lhs);
  rhs = LLVM::BitcastOp::create(b, pair, rhs);
  Value greater = combiner.propagatesNaN
                      ? arith::MaxUIOp::create(b, lhs, rhs).getResult()
                      : arith::MaxNumFOp::create(b, lhs, rhs).getResult();
  return LLVM::BitcastOp::create(b, b.getI32Type(), greater);
}

Value FusionValues::shuffle(Value value, int64_t distance) {
  return NVVM::ShflOp::create(b, value.getType(), b.i32(-1), value,
                              b.i32(distance), b.i32(31), NVVM::ShflKind::bfly,
                              /*return_value_and_is_valid=*/UnitAttr());
}

bool FusionValues::measuresWords(AmaxOp op) const {
  Type type = getElementTypeOrSelf(op.getSource().getType());
  return type.getIntOrFloatBitWidth() == 16 &&
         getBlock(op.getSource()).isFull() &&
         !getBlock(op.getResult()).isFull() &&
         (tile.hasWholeChunks() || tile.hasWholeColumns());
}

std::array<Value, 2> FusionValues::splitWord(Value word, Type element) {
  if (element.isBF16())
    return {arith::ShLIOp::create(b, word, b.i32(16)),
            b.bitAnd(word, 0xffff0000)};
  Value halves =
      LLVM::BitcastOp::create(b, VectorType::get({2}, element), word);
  std::array<Value, 2> bits;
  for (int64_t e = 0; e < 2; ++e) {
    Value half = LLVM::ExtractElementOp::create(b, halves, b.i32(e));
    Value wide = arith::ExtFOp::create(b, b.getF32Type(), half);
    bits[e] = arith::BitcastOp::create(b, b.getI32Type(), wide);
  }
  return bits;
}

//===----------------------------------------------------------------------===//
// The whole tensor
//===----------------------------------------------------------------------===//

void FusionValues::measure(AmaxOp op, int64_t row, int64_t chunk) {
  Value &sofar = measured[op];
  Combiner combiner = getCombinerOf(op);
  for (Value term : getTerms(op, combiner, row, chunk))
    // A NaN that is the first has to give way too.
    sofar = combine(combiner, sofar ? sofar : getIdentity(combiner), term);
}

Value FusionValues::getMeasured(AmaxOp op) {
  Value sofar = measured.lookup(op);
  if (!measuresWords(op))
    return sofar.getType().isF32()
               ? arith::BitcastOp::create(b, b.getI32Type(), sofar).getResult()
               : sofar;
  auto [low, high] =
      splitWord(sofar, getElementTypeOrSelf(op.getSource().getType()));
  return arith::MaxUIOp::create(b, low, high);
}

//===----------------------------------------------------------------------===//
// Rows and blocks
//===----------------------------------------------------------------------===//

FusionValues::Combiner FusionValues::getCombinerOf(Operation *op) {
  // A maximum of floats passes over NaN, whose magnitude is one instruction
  // with it; as bits it is above all.
  if (auto amax = dyn_cast<AmaxOp>(op))
    return {measuresWords(amax)      ? Combiner::Words
            : amax.getPropagateNan() ? Combiner::Bits
                                     : Combiner::Magnitude,
            getElementTypeOrSelf(amax.getSource().getType()),
            amax.getPropagateNan()};
  Operation *adds = getCombiner(cast<linalg::LinalgOp>(op));
  return {isa<arith::AddFOp>(adds)       ? Combiner::Sum
          : isa<arith::MaximumFOp>(adds) ? Combiner::Maximum
                                         : Combiner::MaxNum,
          Type()};
}

SmallVector<Value> FusionValues::getTerms(Operation *op,
                                          const Combiner &combiner, int64_t row,
                                          int64_t chunk) {
  SmallVector<Value> terms;
  if (combiner.kind == Combiner::Words) {
    for (Value word : getWords(cast<AmaxOp>(op).getSource(), row, chunk)) {
      Value magnitudes = b.bitAnd(word, 0x7fff7fff);
      if (Value inside = tile.isInside(row, chunk, 0))
        magnitudes = b.select(inside, magnitudes, b.i32(0));
      terms.push_back(magnitudes);
    }
    return terms;
  }
  if (auto amax = dyn_cast<AmaxOp>(op)) {
    for (Value value : get(amax.getSource(), row, chunk))
      terms.push_back(combiner.kind == Combiner::Magnitude
                          ? math::AbsFOp::create(b, value).getResult()
                          : getMagnitudeBits(b, value));
  } else {
    auto generic = cast<linalg::GenericOp>(op);
    // The body adds to the carried value what it computes of the others.
    Operation *adds = getCombiner(generic);
    BlockArgument carried =
        generic.getMatchingBlockArgument(generic.getDpsInitOperand(0));
    Value term = adds->getOperand(adds->getOperand(0) == carried ? 1 : 0);
    for (int64_t e = 0; e < kChunk; ++e) {
      IRMapping mapping = mapInputs(generic, row, chunk, e);
      terms.push_back(inlineValue(term, mapping));
    }
  }
  for (auto [e, term] : llvm::enumerate(terms))
    if (Value inside = tile.isInside(row, chunk, static_cast<int64_t>(e)))
      term = b.select(inside, term, getIdentity(combiner));
  return terms;
}

Value FusionValues::getInitial(linalg::GenericOp op) {
  auto fill = op.getDpsInits()[0].getDefiningOp<linalg::FillOp>();
  IRMapping mapping;
  return inlineValue(fill.getInputs()[0], mapping);
}

/// Between the lanes of a warp, those beside each other first.
void FusionValues::reduceLanes(const Combiner &combiner,
                               SmallVectorImpl<Value> &slots,
                               const FusionBlock &block) {
  int64_t across = kChunk * config.getLanes(),
          down = config.getRows() * 32 / config.getLanes();
  int64_t columns = block.columns == kWhole ? across : block.columns;
  for (int64_t distance = 1; distance * kChunk < std::min(columns, across);
       distance *= 2)
    for (Value &slot : slots)
      slot = combine(combiner, slot, shuffle(slot, distance));
  for (int64_t distance = 1;
       distance * config.getRows() < std::min(block.rows, down); distance *= 2)
    for (Value &slot : slots)
      slot =
          combine(combiner, slot, shuffle(slot, distance * config.getLanes()));
}

/// Between warps beside each other; a slot for each row.
void FusionValues::reduceWarpsAcross(const Combiner &combiner,
                                     SmallVectorImpl<Value> &slots,
                                     const FusionBlock &block) {
  int64_t reach = kChunk * config.getLanes();
  int64_t warps = block.columns == kWhole
                      ? config.getAcross()
                      : std::max<int64_t>(1, block.columns / reach);
  if (warps == 1)
    return;
  // Rows of a warp: one lane of each writes its own.
  Value space = allocate(config.getAcross() * tile.getTileRows() * 4);
  auto getPlace = [&](Value warp, int64_t row) {
    Value index =
        b.add(b.mul(warp, tile.getTileRows()), b.add(tile.rowInTile, row));
    return b.offset(space, b.mul(index, 4));
  };
  b.ifThen(b.equal(tile.laneAcross, 0), [&] {
    for (auto [row, slot] : llvm::enumerate(slots))
      b.store(slot, getPlace(tile.warpAcross, static_cast<int64_t>(row)));
  });
  NVVM::BarrierOp::create(b);
  Value first = b.mul(b.div(tile.warpAcross, warps), warps);
  for (auto [row, slot] : llvm::enumerate(slots)) {
    Type type = slot.getType();
    slot = {};
    for (int64_t i = 0; i < warps; ++i) {
      Value part =
          b.load(getPlace(b.add(first, i), static_cast<int64_t>(row)), type);
      slot = slot ? combine(combiner, slot, part) : part;
    }
  }
}

/// Between the blocks of a cluster, which have rows together; a slot for each
/// row. Each block writes to all, so that nobody waits for an answer.
void FusionValues::reduceCluster(const Combiner &combiner,
                                 SmallVectorImpl<Value> &slots) {
  int64_t blocks = config.getCluster();
  if (blocks == 1)
    return;
  Value space = allocate(blocks * tile.getTileRows() * 4);
  auto getPlace = [&](Value block, int64_t row) {
    Value index =
        b.add(b.mul(block, tile.getTileRows()), b.add(tile.rowInTile, row));
    return b.offset(space, b.mul(index, 4));
  };
  // Shared memory of a block that has not begun is nobody's yet.
  if (!hasCluster)
    NVVM::ClusterWaitOp::create(b, /*aligned=*/b.getUnitAttr());
  hasCluster = true;
  Value writes = arith::AndIOp::create(b, b.equal(tile.warpAcross, 0),
                                       b.less(tile.laneAcross, b.i32(blocks)));
  auto remote = LLVM::LLVMPointerType::get(
      b.getContext(),
      static_cast<unsigned>(NVVM::NVVMMemorySpace::SharedCluster));
  b.ifThen(writes, [&] {
    for (auto [row, slot] : llvm::enumerate(slots)) {
      Value place = getPlace(tile.blockAcross, static_cast<int64_t>(row));
      b.store(slot, NVVM::MapaOp::create(b, remote, place, tile.laneAcross));
    }
  });
  NVVM::ClusterArriveOp::create(b, /*aligned=*/b.getUnitAttr());
  NVVM::ClusterWaitOp::create(b, /*aligned=*/b.getUnitAttr());
  for (auto [row, slot] : llvm::enumerate(slots)) {
    Type type = slot.getType();
    slot = {};
    for (int64_t i = 0; i < blocks; ++i) {
      Value part = b.load(getPlace(b.i32(i), static_cast<int64_t>(row)), type);
      slot = slot ? combine(combiner, slot, part) : part;
    }
  }
}

/// Between warps below each other; a slot for each column or two, or for each
/// chunk.
void FusionValues::reduceWarpsDown(const Combiner &combiner,
                                   SmallVectorImpl<Value> &slots,
                                   const FusionBlock &block) {
  int64_t reach = config.getRows() * 32 / config.getLanes();
  int64_t warps = std::max<int64_t>(1, block.rows / reach);
  if (warps == 1)
    return;
  int64_t perGroup = static_cast<int64_t>(slots.size()) / tile.getChunks();
  int64_t width = tile.getGroups() * static_cast<int64_t>(slots.size());
  Value space = allocate(config.getDown() * tile.getTileColumns() * 4);
  auto getPlace = [&](Value warp, int64_t slot) {
    int64_t chunk = slot / perGroup;
    Value column =
        b.add(b.mul(b.add(tile.group, chunk * tile.getGroups()), perGroup),
              slot % perGroup);
    return b.offset(space, b.mul(b.add(b.mul(warp, width), column), 4));
  };
  b.ifThen(b.equal(tile.laneDown, 0), [&] {
    for (auto [i, slot] : llvm::enumerate(slots))
      b.store(slot, getPlace(tile.warpDown, static_cast<int64_t>(i)));
  });
  NVVM::BarrierOp::create(b);
  Value first = b.mul(b.div(tile.warpDown, warps), warps);
  for (auto [i, slot] : llvm::enumerate(slots)) {
    Type type = slot.getType();
    slot = {};
    for (int64_t j = 0; j < warps; ++j) {
      Value part =
          b.load(getPlace(b.add(first, j), static_cast<int64_t>(i)), type);
      slot = slot ? combine(combiner, slot, part) : part;
    }
  }
}

int64_t FusionValues::getScratchBytes(const FusionSpec &spec,
                                      FusionConfigAttr config) {
  int64_t bytes = 0, rows = config.getTileRows(),
          columns = config.getTileColumns();
  auto add = [&](int64_t words) { bytes += llvm::alignTo(words * 4, 16); };
  for (Operation &op : spec.getBody().without_terminator()) {
    if (auto scale = dyn_cast<ComputeScaleOp>(op)) {
      FusionBlock block = spec.getBlock(*spec.layouts.lookup(scale.getScale()));
      if (block.rows > 1 && block.columns == 1)
        for (int64_t half = 0; half < 2 * config.getChunks(); ++half)
          add(rows / block.rows * columns);
    }
    if (!isReduction(&op))
      continue;
    FusionBlock block = spec.getBlock(*spec.layouts.lookup(op.getResult(0)));
    if (block.isSingle()) {
      add(config.getWarps());
      continue;
    }
    if (block.columns == kWhole) {
      add(config.getAcross() * rows);
      if (config.getCluster() > 1)
        add(config.getCluster() * rows);
    }
    if (block.rows != 1)
      add(config.getDown() * columns);
  }
  return bytes;
}

/// The amaxes of blocks, from words of two elements: bits of f32, a slot for
/// each row, chunk and column that the blocks tell apart.
SmallVector<Value> FusionValues::reduceWords(AmaxOp op,
                                             const FusionBlock &block) {
  Combiner words = getCombinerOf(op), bits{Combiner::Bits, Type()};
  Type element = words.element;
  int64_t rows = tile.getRows(), chunks = tile.getChunks();
  auto rotate = [&](Value word) -> Value {
    return NVVM::PermuteOp::create(b, b.getI32Type(), word, word, b.i32(0x1032),
                                   NVVM::PermuteMode::DEFAULT);
  };
  SmallVector<Value> slots;
  if (block.columns == 1) {
    // Two columns in each.
    for (int64_t chunk = 0; chunk < chunks; ++chunk) {
      SmallVector<Value> pairs(kChunk / 2, b.i32(0));
      for (int64_t row = 0; row < rows; ++row)
        for (auto [pair, term] :
             llvm::zip_equal(pairs, getTerms(op, words, row, chunk)))
          pair = combine(words, pair, term);
      slots.append(pairs);
    }
    reduceLanes(words, slots, block);
    reduceWarpsDown(words, slots, block);
    SmallVector<Value> columns;
    for (Value slot : slots)
      llvm::append_range(columns, splitWord(slot, element));
    return columns;
  }
  // A row's chunk, or all chunks of whole rows, in both halves of a word.
  bool byRow = block.rows == 1, byChunk = block.columns != kWhole;
  int64_t slotRows = byRow ? rows : 1, slotChunks = byChunk ? chunks : 1;
  slots.assign(slotRows * slotChunks, b.i32(0));
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t chunk = 0; chunk < chunks; ++chunk) {
      Value &slot =
          slots[(byRow ? row : 0) * slotChunks + (byChunk ? chunk : 0)];
      for (Value term : getTerms(op, words, row, chunk))
        slot = combine(words, slot, term);
    }
  for (Value &slot : slots)
    slot = combine(words, slot, rotate(slot));
  // Two slots in one word halve the shuffles.
  SmallVector<Value> pairs;
  for (size_t i = 0; i < slots.size(); i += 2)
    pairs.push_back(i + 1 == slots.size()
                        ? slots[i]
                        : NVVM::PermuteOp::create(b, b.getI32Type(), slots[i],
                                                  slots[i + 1], b.i32(0x5410),
                                                  NVVM::PermuteMode::DEFAULT));
  reduceLanes(words, pairs, block);
  for (auto [i, pair] : llvm::enumerate(pairs)) {
    std::array<Value, 2> split = splitWord(pair, element);
    slots[2 * i] = split[0];
    if (2 * i + 1 < slots.size())
      slots[2 * i + 1] = split[1];
  }
  if (!byChunk) {
    reduceWarpsAcross(bits, slots, block);
    reduceCluster(bits, slots);
  }
  if (!byRow)
    reduceWarpsDown(bits, slots, block);
  return slots;
}

bool FusionValues::isOfLanes(Operation *op) const {
  if (!op || !isReduction(op))
    return false;
  FusionBlock block = getBlock(op->getResult(0));
  return block.rows == 1 && block.batches == 1 && block.columns >= kChunk &&
         block.columns <= kChunk * config.getLanes() &&
         llvm::isPowerOf2_64(block.columns);
}

/// What a reduction's slot is as an element of its result.
Value FusionValues::finish(Operation *op, const Combiner &combiner,
                           Value slot) {
  if (!isa<AmaxOp>(op))
    return combine(combiner, getInitial(cast<linalg::GenericOp>(op)), slot);
  // Where nothing but NaN was there.
  if (combiner.kind == Combiner::Magnitude)
    return combine(combiner, slot, getIdentity(combiner));
  return arith::BitcastOp::create(b, b.getF32Type(), slot);
}

void FusionValues::reduceRow(Operation *op, int64_t row) {
  Value result = op->getResult(0);
  Combiner combiner = getCombinerOf(op);
  for (int64_t chunk = 0; chunk < tile.getChunks(); ++chunk) {
    SmallVector<Value> slot(1);
    for (Value term : getTerms(op, combiner, row, chunk))
      slot[0] = slot[0] ? combine(combiner, slot[0], term) : term;
    reduceLanes(combiner, slot, getBlock(result));
    if (combiner.kind == Combiner::Words) {
      auto [low, high] = splitWord(slot[0], combiner.element);
      slot[0] = arith::MaxUIOp::create(b, low, high);
    }
    elements[{result.getAsOpaquePointer(), row, chunk}] = {
        finish(op, combiner, slot[0])};
  }
}

void FusionValues::reduce(Operation *op) {
  Value result = op->getResult(0);
  FusionBlock block = getBlock(result);
  Combiner combiner = getCombinerOf(op);
  int64_t rows = block.rows == 1 ? tile.getRows() : 1;
  int64_t chunks = block.columns == kWhole ? 1 : tile.getChunks();
  int64_t columns = block.columns == 1 ? kChunk : 1;
  // Rows outermost, then chunks, then columns.
  SmallVector<Value> slots;
  if (combiner.kind == Combiner::Words) {
    slots = reduceWords(cast<AmaxOp>(op), block);
  } else {
    slots.resize(rows * chunks * columns);
    for (int64_t row = 0; row < tile.getRows(); ++row)
      for (int64_t chunk = 0; chunk < tile.getChunks(); ++chunk)
        for (auto [e, term] :
             llvm::enumerate(getTerms(op, combiner, row, chunk))) {
          int64_t at = ((block.rows == 1 ? row : 0) * chunks +
                        (block.columns == kWhole ? 0 : chunk)) *
                           columns +
                       (columns == 1 ? 0 : static_cast<int64_t>(e));
          slots[at] = slots[at] ? combine(combiner, slots[at], term) : term;
        }
    reduceLanes(combiner, slots, block);
    if (block.columns == kWhole) {
      reduceWarpsAcross(combiner, slots, block);
      reduceCluster(combiner, slots);
    }
    if (block.rows != 1)
      reduceWarpsDown(combiner, slots, block);
  }
  for (Value &slot : slots)
    slot = finish(op, combiner, slot);
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t chunk = 0; chunk < chunks; ++chunk)
      elements[{result.getAsOpaquePointer(), row, chunk}] = SmallVector<Value>(
          ArrayRef(slots).slice((row * chunks + chunk) * columns, columns));
}
