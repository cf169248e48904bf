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

using namespace mlir;
using namespace mlir::fp8;

static constexpr int64_t kWaveRows = 64;
static constexpr int64_t kBufferBytes = kWaveRows * 128;

BulkTileStore::BulkTileStore(KernelBuilder &b, Shape shape, Value base,
                             Value staging, Value map, Value barrierId)
    : b(b), shape(shape), base(base), staging(staging), map(map),
      barrierId(barrierId),
      slabs(
          llvm::divideCeil(shape.cols * shape.elementBytes, shape.slabBytes)) {}

void BulkTileStore::storeWave(Value wave, Value thread, ValueRange origin,
                              PackedAt packedAt) {
  // All results of the wave before the first barrier: what the epilogue loads
  // is then under way at once, not slab by slab.
  SmallVector<Value> packed;
  for (int64_t j = 0; j < shape.cols / 8; ++j)
    for (int64_t h = 0; h < 2; ++h)
      packed.push_back(packedAt(j, h));
  if (shape.elementBytes < 4)
    packed = pinHere(b, packed);

  Value isFirstWarp = b.less(thread, b.i32(32));
  int64_t slabCols = shape.slabBytes / shape.elementBytes;
  for (int64_t slab = 0; slab < slabs; ++slab) {
    Value number = b.add(b.mul(wave, slabs), slab);
    // The last slab ends with the tile: what it shares with the one before is
    // written twice, the same.
    int64_t col = std::min(slab * slabCols, shape.cols - slabCols);
    // Buffers alternate; where a tile has an odd number of slabs, its first one
    // meets the buffer that the last tile used last. (That of a later wave does
    // not, but the code may serve all waves.)
    bool repeats =
        shape.buffers == 1 || (slab == 0 && (shape.waves * slabs) % 2 == 1);
    b.ifThen(isFirstWarp, [&] { waitForReads(b, repeats ? 0 : 1); });
    b.namedBarrier(barrierId, 128);
    Value bufferOffset =
        b.add(staging, b.mul(b.rem(number, shape.buffers), kBufferBytes));
    Value buffer = b.offset(base, bufferOffset);
    writeSlab(buffer, thread, ArrayRef(packed).slice(col / 4, slabCols / 4));
    fenceForBulkCopies(b);
    b.namedBarrier(barrierId, 128);
    b.ifThen(isFirstWarp, [&] {
      b.electOne([&] {
        SmallVector<Value> coordinates(origin);
        coordinates[0] = b.add(coordinates[0], col);
        bulkStore(b, map, buffer, coordinates);
      });
    });
  }
}

void BulkTileStore::finish(Value thread) {
  b.ifThen(b.less(thread, b.i32(32)), [&] { waitForWrites(b); });
}

Value BulkTileStore::getSwizzled(Value row, Value chunk) {
  Value linear = b.add(b.mul(row, shape.slabBytes), b.mul(chunk, 16));
  // Address bits 4.. are exclusive-ored with bits 7..: 3, 2 or 1 of them.
  int64_t mask = shape.slabBytes - 16;
  if (mask == 0)
    return linear;
  return b.bitXor(linear, b.bitAnd(b.shiftRight(linear, 3), mask));
}

void BulkTileStore::writeSlab(Value buffer, Value thread,
                              ArrayRef<Value> packed) {
  int64_t groups = shape.slabBytes / shape.elementBytes / 8;
  Value warp = b.shiftRight(thread, 5), lane = b.bitAnd(thread, 31);
  Value warpRow = b.mul(warp, 16);
  if (shape.elementBytes == 2 && groups % 2 == 0) {
    // Four 8x8 matrices at once: rows 0-7 and 8-15 of two column groups. Lane l
    // gives the address of row l % 16 of group l / 16.
    Value row = b.add(warpRow, b.bitAnd(lane, 15));
    Value group = b.shiftRight(lane, 4);
    for (int64_t j = 0; j < groups; j += 2) {
      SmallVector<Value> registers;
      for (int64_t g = 0; g < 2; ++g)
        for (int64_t h = 0; h < 2; ++h)
          registers.push_back(packed[2 * (j + g) + h]);
      Value address = b.offset(buffer, getSwizzled(row, b.add(group, j)));
      NVVM::StMatrixOp::create(
          b, address, registers, NVVM::MMALayout::row,
          NVVM::LdStMatrixShapeAttr::get(b.getContext(), 8, 8),
          NVVM::LdStMatrixEltType::B16);
    }
    return;
  }
  // Pairs; a quad of lanes writes neighbouring ones.
  Value quad = b.bitAnd(lane, 3);
  int64_t groupBytes = 8 * shape.elementBytes;
  for (int64_t j = 0; j < groups; ++j)
    for (int64_t h = 0; h < 2; ++h) {
      Value row = b.add(b.add(warpRow, b.shiftRight(lane, 2)), 8 * h);
      Value byte = b.add(b.mul(quad, 2 * shape.elementBytes), j * groupBytes);
      Value address =
          b.add(getSwizzled(row, b.shiftRight(byte, 4)), b.bitAnd(byte, 15));
      b.store(packed[2 * j + h], b.offset(buffer, address));
    }
}

void DirectTileStore::storeWave(Value result, const Fragment &fragment,
                                PackedAt packedAt) {
  int64_t width = elementType.getIntOrFloatBitWidth();
  // PTX has no 8-bit registers: a 16-bit one stands in.
  std::string code = "st.global.b" + std::to_string(width) + " [$0], $1;";
  for (int64_t j = 0; j < cols / 8; ++j)
    for (int64_t h = 0; h < 2; ++h) {
      Value packed = packedAt(j, h);
      for (int64_t e = 0; e < 2; ++e) {
        Value value;
        if (width == 32)
          value = LLVM::ExtractElementOp::create(b, packed, b.i32(e));
        else
          value = LLVM::TruncOp::create(b, b.getI16Type(),
                                        b.shiftRight(packed, e * width));
        Value row = fragment.getRow(b, h), col = fragment.getCol(b, j, e);
        Value indexM = fragment.swapped ? col : row;
        Value indexN = fragment.swapped ? row : col;
        Value inside = b.bitAnd(b.less(indexM, m), b.less(indexN, n));
        Value index = b.add(b.mul(b.widen(indexM), strideM), b.widen(indexN));
        b.ptx(code, {b.element(result, index, elementType), value}, inside);
      }
    }
}
