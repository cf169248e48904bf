//===- TileStore.cpp - Fragments to memory --------------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TileStore.h"
#include "BulkCopy.h"
#include "Hazards.h"
#include "OperandTile.h"

using namespace mlir;
using namespace mlir::fp8;

/// A row of the widest slab.
static constexpr int64_t kBufferRowBytes = 128;

/// Pairs of elements of so many bytes that are 16.
static size_t getPairsTogether(int64_t elementBytes) {
  return static_cast<size_t>(8 / elementBytes);
}

/// These, as four words.
static Value packWords(KernelBuilder &b, ValueRange pairs,
                       int64_t elementBytes) {
  auto type = VectorType::get({static_cast<int64_t>(pairs.size())},
                              b.getIntegerType(16 * elementBytes));
  Value chunk = LLVM::UndefOp::create(b, type);
  for (auto [i, pair] : llvm::enumerate(pairs)) {
    if (isa<VectorType>(pair.getType()))
      pair = LLVM::BitcastOp::create(b, b.getI64Type(), pair);
    chunk = LLVM::InsertElementOp::create(b, chunk, pair, b.i32(i));
  }
  return LLVM::BitcastOp::create(b, VectorType::get({4}, b.getI32Type()),
                                 chunk);
}

BulkTileStore::BulkTileStore(KernelBuilder &b, Shape shape,
                             const FragmentLayout &layout, Value base,
                             Value staging, Value barrierId, Value isFirstWarp)
    : b(b), shape(shape), layout(layout), base(base), staging(staging),
      barrierId(barrierId), isFirstWarp(isFirstWarp),
      slabs(shape.transposed
                ? 1
                : llvm::divideCeil(layout.getNumCols() * shape.elementBytes,
                                   shape.slabBytes)) {}

void BulkTileStore::storeSubtile(Value map, Value subtile, Value thread,
                                 ValueRange origin, PackedAt packedAt) {
  // All results of the subtile before the first barrier: what the epilogue
  // loads is then under way at once, not slab by slab.
  SmallVector<Value> packed;
  for (size_t pair = 0; pair < layout.pairs.size(); ++pair)
    packed.push_back(packedAt(pair));
  if (shape.elementBytes < 4)
    packed = pinHere(b, packed);

  if (takesSubtiles()) {
    b.ifThen(isFirstWarp, [&] { waitForReads(b, shape.buffers - slabs); });
    b.namedBarrier(barrierId, 128);
    for (int64_t slab = 0; slab < slabs; ++slab)
      writeSlab(getBuffer(subtile, slab), thread, getFirstCol(slab), packed);
    fenceForBulkCopies(b);
    b.namedBarrier(barrierId, 128);
    b.ifThen(isFirstWarp, [&] {
      b.electOne([&] {
        for (int64_t slab = 0; slab < slabs; ++slab)
          storeSlab(map, getBuffer(subtile, slab), origin, getFirstCol(slab));
      });
    });
    return;
  }
  for (int64_t slab = 0; slab < slabs; ++slab) {
    // Buffers alternate; where a tile's last slab has the first buffer, the
    // next tile's first one meets it. (That of a later subtile does not, but
    // the code may serve all subtiles.)
    bool repeats = shape.buffers == 1 ||
                   (slab == 0 && (shape.subtiles * slabs) % shape.buffers == 1);
    b.ifThen(isFirstWarp, [&] { waitForReads(b, repeats ? 0 : 1); });
    b.namedBarrier(barrierId, 128);
    Value buffer = getBuffer(subtile, slab);
    writeSlab(buffer, thread, getFirstCol(slab), packed);
    fenceForBulkCopies(b);
    b.namedBarrier(barrierId, 128);
    b.ifThen(isFirstWarp, [&] {
      b.electOne([&] { storeSlab(map, buffer, origin, getFirstCol(slab)); });
    });
  }
}

int64_t BulkTileStore::getFirstCol(int64_t slab) const {
  // The last slab ends with the tile: what it shares with the one before is
  // written twice, the same.
  if (shape.transposed)
    return 0;
  int64_t slabCols = shape.slabBytes / shape.elementBytes;
  return std::min(slab * slabCols, layout.getNumCols() - slabCols);
}

Value BulkTileStore::getBuffer(Value subtile, int64_t slab) {
  Value number = b.rem(b.add(b.mul(subtile, slabs), slab), shape.buffers);
  Value offset = b.mul(number, shape.rows * kBufferRowBytes);
  return b.offset(base, b.add(staging, offset));
}

void BulkTileStore::storeSlab(Value map, Value buffer, ValueRange origin,
                              int64_t col) {
  SmallVector<Value> coordinates(origin);
  coordinates[0] = b.add(coordinates[0], col);
  bulkStore(b, map, buffer, coordinates);
}

void BulkTileStore::finish() {
  b.ifThen(isFirstWarp, [&] { waitForWrites(b); });
}

void BulkTileStore::skipSubtile() {
  // Buffers of later subtiles may be those that were to be next to last.
  b.ifThen(isFirstWarp, [&] { waitForReads(b, 0); });
}

Value BulkTileStore::getSwizzled(Value row, Value chunk) {
  return swizzleBytes(b, b.add(b.mul(row, shape.slabBytes), b.mul(chunk, 16)),
                      shape.slabBytes);
}

void BulkTileStore::writeMatrices(Value buffer, Value thread,
                                  ArrayRef<Value> packed) {
  Value warp = b.shiftRight(thread, 5), lane = b.bitAnd(thread, 31);
  Value warpRow = b.mul(warp, 16);
  // Four 8x8 matrices at once: rows 0-7 and 8-15 of two column groups. Lane l
  // gives the address of row l % 16 of group l / 16.
  Value row = b.add(warpRow, b.bitAnd(lane, 15));
  Value group = b.shiftRight(lane, 4);
  for (size_t first = 0; first < packed.size(); first += 4) {
    Value chunk = b.add(group, static_cast<int64_t>(first / 2));
    NVVM::StMatrixOp::create(
        b, b.offset(buffer, getSwizzled(row, chunk)), packed.slice(first, 4),
        NVVM::MMALayout::row,
        NVVM::LdStMatrixShapeAttr::get(b.getContext(), 8, 8),
        NVVM::LdStMatrixEltType::B16);
  }
}

void BulkTileStore::writeTransposed(Value buffer, Value thread,
                                    ArrayRef<Value> packed) {
  Value warp = b.shiftRight(thread, 5), lane = b.bitAnd(thread, 31);
  if (!layout.isMatrices)
    return writeNeighbours(buffer, warp, lane, packed);
  // Four 8x8 matrices at once, of 16 rows, which lie beside each other here,
  // and two groups of columns, which lie below each other. Lane l gives the
  // address of column l % 8 of group l / 16, of rows from 8 (l / 8 % 2) on.
  Value chunk = b.add(b.mul(warp, 2), b.bitAnd(b.shiftRight(lane, 3), 1));
  Value row = b.add(b.bitAnd(lane, 7), b.mul(b.shiftRight(lane, 4), 8));
  for (size_t first = 0; first < packed.size(); first += 4) {
    Value own = b.add(row, static_cast<int64_t>(first * 4));
    NVVM::StMatrixOp::create(
        b, b.offset(buffer, getSwizzled(own, chunk)),
        packed.slice(first, std::min<size_t>(4, packed.size() - first)),
        NVVM::MMALayout::col,
        NVVM::LdStMatrixShapeAttr::get(b.getContext(), 8, 8),
        NVVM::LdStMatrixEltType::B16);
  }
}

void BulkTileStore::writeNeighbours(Value buffer, Value warp, Value lane,
                                    ArrayRef<Value> packed) {
  auto permute = [&](Value low, Value high, int64_t selector) -> Value {
    return NVVM::PermuteOp::create(b, b.getI32Type(), low, high,
                                   b.i32(selector), NVVM::PermuteMode::DEFAULT);
  };
  // A lane's two rows are a word of each column. Lanes of four words write to
  // 16 bytes, and those of four columns to different banks.
  Value place = b.shiftRight(lane, 2);
  Value chunk = b.add(b.mul(warp, 2), b.shiftRight(place, 2));
  Value byte = b.mul(b.bitAnd(place, 3), 4);
  Value col = b.mul(b.bitAnd(lane, 3), 2);
  for (size_t first = 0; first < packed.size(); first += 2) {
    Value own = b.add(col, static_cast<int64_t>(first * 4));
    Value low = packed[first], high = packed[first + 1];
    for (auto [e, selector] : llvm::enumerate(std::array{0x5410, 0x7632})) {
      Value row = b.add(own, static_cast<int64_t>(e));
      b.store(permute(low, high, selector),
              b.offset(buffer, b.add(getSwizzled(row, chunk), byte)));
    }
  }
}

void BulkTileStore::writeRow(Value buffer, Value thread,
                             ArrayRef<Value> packed) {
  size_t pairs = getPairsTogether(shape.elementBytes);
  for (size_t first = 0; first < packed.size(); first += pairs) {
    auto number = static_cast<int64_t>(first / pairs);
    LLVM::StoreOp::create(
        b, packWords(b, packed.slice(first, pairs), shape.elementBytes),
        b.offset(buffer, getSwizzled(thread, b.i32(number))),
        /*alignment=*/16);
  }
}

void BulkTileStore::writeSlab(Value buffer, Value thread, int64_t firstCol,
                              ArrayRef<Value> packed) {
  if (shape.transposed)
    return writeTransposed(buffer, thread, packed);
  int64_t slabCols = shape.slabBytes / shape.elementBytes;
  SmallVector<std::pair<FragmentLayout::Place, Value>> inSlab;
  for (auto [place, value] : llvm::zip_equal(layout.pairs, packed))
    if (place.col >= firstCol && place.col < firstCol + slabCols)
      inSlab.emplace_back(place, value);
  if (layout.isMatrices && shape.elementBytes == 2 && slabCols % 16 == 0)
    return writeMatrices(
        buffer, thread,
        llvm::map_to_vector(inSlab, [](auto &entry) { return entry.second; }));
  if (layout.lanesPerRow == 1)
    return writeRow(
        buffer, thread,
        llvm::map_to_vector(inSlab, [](auto &entry) { return entry.second; }));
  Value firstRow = layout.getFirstRow(b, thread);
  Value firstByte = b.mul(layout.getFirstCol(b, thread), shape.elementBytes);
  for (auto [place, value] : inSlab) {
    Value row = b.add(firstRow, layout.rows[place.row]);
    Value byte = b.add(firstByte, (place.col - firstCol) * shape.elementBytes);
    Value address =
        b.add(getSwizzled(row, b.shiftRight(byte, 4)), b.bitAnd(byte, 15));
    b.store(value, b.offset(buffer, address));
  }
}

std::pair<Value, Value> DirectTileStore::locate(Value result, Value indexM,
                                                Value indexN) {
  Value inside = b.bitAnd(b.less(indexM, m), b.less(indexN, n));
  Value index = b.add(b.mul(b.widen(indexM), strideM), b.widen(indexN));
  return {b.element(result, index, elementType), inside};
}

void DirectTileStore::storeRow(Value result, const Fragment &fragment,
                               PackedAt packedAt) {
  int64_t bytes = elementType.getIntOrFloatBitWidth() / 8;
  size_t together = getPairsTogether(bytes);
  for (size_t first = 0; first < layout.pairs.size(); first += together) {
    SmallVector<Value> packed;
    for (size_t pair = first; pair < first + together; ++pair)
      packed.push_back(packedAt(pair));
    Value words = packWords(b, packed, bytes);
    const FragmentLayout::Place &place = layout.pairs[first];
    auto [address, inside] =
        locate(result, fragment.getRow(b, layout, place.row),
               fragment.getCol(b, place.col, 0));
    SmallVector<Value> operands{address};
    for (int64_t i = 0; i < 4; ++i)
      operands.push_back(LLVM::ExtractElementOp::create(b, words, b.i32(i)));
    b.ptx("st.global.v4.b32 [$0], {$1, $2, $3, $4};", operands, inside);
  }
}

void DirectTileStore::storeSubtile(Value result, const Fragment &fragment,
                                   PackedAt packedAt) {
  if (inPairs && layout.lanesPerRow == 1)
    return storeRow(result, fragment, packedAt);
  int64_t width = elementType.getIntOrFloatBitWidth();
  // PTX has no 8-bit registers: a 16-bit one stands in.
  auto getCode = [](int64_t width) {
    return "st.global.b" + std::to_string(width) + " [$0], $1;";
  };
  for (auto [pair, place] : llvm::enumerate(layout.pairs)) {
    Value packed = packedAt(pair);
    Value row = fragment.getRow(b, layout, place.row);
    if (inPairs) {
      auto [address, inside] =
          locate(result, row, fragment.getCol(b, place.col, 0));
      if (isa<VectorType>(packed.getType()))
        packed = LLVM::BitcastOp::create(b, b.getI64Type(), packed);
      b.ptx(getCode(2 * width), {address, packed}, inside);
      continue;
    }
    for (int64_t e = 0; e < 2; ++e) {
      Value value;
      if (width == 32)
        value = LLVM::ExtractElementOp::create(b, packed, b.i32(e));
      else
        value = LLVM::TruncOp::create(b, b.getI16Type(),
                                      b.shiftRight(packed, e * width));
      Value col = fragment.getCol(b, place.col, e);
      auto [address, inside] = fragment.swapped ? locate(result, col, row)
                                                : locate(result, row, col);
      b.ptx(getCode(width), {address, value}, inside);
    }
  }
}
