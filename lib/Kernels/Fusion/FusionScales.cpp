//===- FusionScales.cpp - Scales of blocks in registers -------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
// The arithmetic of a scale is long, two exact divisions for most, and threads
// that share a block would all do it: they share the blocks out instead, and
// exchange what they have.

#include "FusionCodes.h"
#include "FusionValues.h"
#include "fp8/IR/ScalarBuilder.h"

using namespace mlir;
using namespace mlir::fp8;

static constexpr int64_t kWhole = ScaledType::kWhole;

/// Divisions of scales are exact, whatever the functions of the kernel are.
static void pinDivisions(KernelBuilder &b, Block::iterator first,
                         MutableArrayRef<Value> results) {
  Block *block = b.getInsertionBlock();
  for (Operation &op :
       llvm::make_early_inc_range(llvm::make_range(first, block->end()))) {
    auto division = dyn_cast<arith::DivFOp>(op);
    if (!division)
      continue;
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPoint(division);
    Value exact = LLVM::FDivOp::create(b, division.getLhs(), division.getRhs());
    for (Value &result : results)
      if (result == division)
        result = exact;
    division.replaceAllUsesWith(exact);
    division.erase();
  }
}

std::pair<Value, Value> FusionValues::buildTensorScale(ComputeScaleOp op) {
  std::pair<Value, Type> key(op.getTensorAmax(), op.getFormat());
  auto [known, isNew] = tensorScales.try_emplace(key);
  if (!isNew)
    return known->second;
  Value amax = get(op.getTensorAmax(), 0, 0).front();
  Operation *marker = b.i32(0).getDefiningOp();
  ScalarBuilder scalar(b.getLoc(), b);
  auto [scale, inverse] =
      buildTensorScales(scalar, amax, cast<FloatType>(op.getFormat()));
  Value both[] = {scale, inverse};
  pinDivisions(b, marker->getIterator(), both);
  return tensorScales[key] = {both[0], both[1]};
}

std::pair<Value, Value> FusionValues::buildScale(ComputeScaleOp op,
                                                 Value amax) {
  Value tensorScale;
  if (op.getTensorAmax())
    tensorScale = buildTensorScale(op).first;
  Operation *marker = b.i32(0).getDefiningOp();
  ScalarBuilder scalar(b.getLoc(), b);
  auto format = cast<FloatType>(op.getFormat());
  auto encodeScale = [&](Value factor) -> std::pair<Value, Value> {
    Value code = encodeFactor(b, factor);
    return {code, decodeFactor(b, code, op.getScaleType())};
  };
  auto [scale, inverse] =
      tensorScale
          ? buildBlockScales(scalar, amax, tensorScale, format, encodeScale)
          : buildScales(scalar, op.getRule(), amax, format, op.getScaleType());
  // A code is a byte here, in a register.
  if (auto code = inverse.getDefiningOp<arith::BitcastOp>();
      code && !inverse.getType().isF32())
    inverse = arith::ExtUIOp::create(b, b.getI32Type(), code.getIn());
  Value both[] = {scale, inverse};
  pinDivisions(b, marker->getIterator(), both);
  return {both[0], both[1]};
}

void FusionValues::setScales(ComputeScaleOp op, int64_t row, int64_t chunk,
                             SmallVector<Value> scales,
                             SmallVector<Value> inverses) {
  elements[{op.getScale().getAsOpaquePointer(), row, chunk}] =
      std::move(scales);
  // Codes for each element are packed, as other codes are.
  if (getBlock(op.getScaleInv()).isFull() && !op.getScaleType().isF32())
    inverses = {joinCodes(b, ArrayRef(inverses).take_front(4)),
                joinCodes(b, ArrayRef(inverses).drop_front(4))};
  elements[{op.getScaleInv().getAsOpaquePointer(), row, chunk}] =
      std::move(inverses);
}

/// The element of `values` that `index` (i32) says.
static Value choose(KernelBuilder &b, ArrayRef<Value> values, Value index) {
  Value chosen = values.front();
  for (auto [i, value] : llvm::enumerate(values.drop_front()))
    chosen =
        b.select(b.equal(index, static_cast<int64_t>(i) + 1), value, chosen);
  return chosen;
}

/// Lanes that share the blocks of some rows have a row each.
void FusionValues::shareRowScales(ComputeScaleOp op, const FusionBlock &block,
                                  int64_t chunk) {
  int64_t rows = tile.getRows();
  int64_t sharing = config.getLanes();
  if (block.columns != kWhole)
    sharing = std::min(sharing, block.columns / kChunk);
  SmallVector<Value> amaxes;
  for (int64_t row = 0; row < rows; ++row)
    amaxes.push_back(get(op.getAmax(), row, chunk).front());
  Value own = b.bitAnd(tile.lane, sharing - 1);
  Value first = b.sub(tile.lane, own);
  SmallVector<std::pair<Value, Value>> computed;
  for (int64_t row = 0; row < rows; row += sharing)
    computed.push_back(buildScale(
        op,
        choose(b, ArrayRef(amaxes).slice(row, std::min(sharing, rows - row)),
               own)));
  auto read = [&](Value value, int64_t row) -> Value {
    return NVVM::ShflOp::create(b, value.getType(), b.i32(-1), value,
                                b.add(first, row % sharing), b.i32(31),
                                NVVM::ShflKind::idx,
                                /*return_value_and_is_valid=*/UnitAttr());
  };
  for (int64_t row = 0; row < rows; ++row) {
    auto [scale, inverse] = computed[row / sharing];
    setScales(op, row, chunk, {read(scale, row)}, {read(inverse, row)});
  }
}

/// Threads below each other, which share the blocks of 8 columns, have one or
/// more of these each, and exchange scales through shared memory.
void FusionValues::shareColumnScales(ComputeScaleOp op,
                                     const FusionBlock &block, int64_t chunk) {
  SmallVector<Value> amaxes = get(op.getAmax(), 0, chunk);
  int64_t sharing = std::min(kChunk, block.rows / tile.getRows());
  int64_t each = kChunk / sharing;
  Value blockRow = b.div(tile.rowInTile, block.rows);
  Value below = b.div(b.rem(tile.rowInTile, block.rows), tile.getRows());
  int64_t numBlocks = tile.getTileRows() / block.rows;
  int64_t width = tile.getGroups() * kChunk;
  Value space[2];
  for (Value &half : space)
    half = allocate(numBlocks * width * 4);
  Value start = b.add(b.mul(blockRow, width), b.mul(tile.group, kChunk));
  auto getPlace = [&](int64_t half, Value column) {
    return b.offset(space[half], b.mul(b.add(start, column), 4));
  };
  SmallVector<std::pair<Value, Value>> computed;
  for (int64_t i = 0; i < each; ++i)
    computed.push_back(buildScale(
        op, choose(b, ArrayRef(amaxes).slice(i * sharing, sharing), below)));
  b.ifThen(b.less(below, b.i32(sharing)), [&] {
    for (auto [i, both] : llvm::enumerate(computed)) {
      Value column = b.add(below, static_cast<int64_t>(i) * sharing);
      b.store(both.first, getPlace(0, column));
      b.store(both.second, getPlace(1, column));
    }
  });
  NVVM::BarrierOp::create(b);
  SmallVector<Value> results[2];
  for (int64_t half = 0; half < 2; ++half) {
    Type type =
        half == 0 ? computed[0].first.getType() : computed[0].second.getType();
    for (int64_t e = 0; e < kChunk; e += 4) {
      Value four = b.load(getPlace(half, b.i32(e)), VectorType::get({4}, type));
      for (int64_t i = 0; i < 4; ++i)
        results[half].push_back(
            LLVM::ExtractElementOp::create(b, four, b.i32(i)));
    }
  }
  setScales(op, 0, chunk, results[0], results[1]);
}
