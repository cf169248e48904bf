//===- OperandCopy.cpp - Operands to stages of a ring ---------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "OperandCopy.h"
#include "BulkCopy.h"

using namespace mlir;
using namespace mlir::fp8;

static void copyBox(KernelBuilder &b, Value map, Value to, Value barrier,
                    ValueRange coordinates, Value blocks) {
  if (blocks)
    bulkLoadToCluster(b, map, to, barrier, coordinates, blocks);
  else if (cast<LLVM::LLVMPointerType>(barrier.getType()).getAddressSpace() ==
           7)
    bulkLoadOfPair(b, map, to, barrier, coordinates);
  else
    bulkLoad(b, map, to, barrier, coordinates);
}

/// How many rows of the operand there are from `row` on.
static Value getRowsFrom(KernelBuilder &b, const SharedOperand &operand,
                         Value row) {
  return b.select(b.less(row, operand.end), b.sub(operand.end, row), b.i32(0));
}

/// The box that begins at `row`: whole, or what is in bounds of it, if anything
/// is.
static void copyInBounds(KernelBuilder &b, const SharedOperand &operand,
                         Value row, llvm::function_ref<void(Value)> copy) {
  auto copyIfAny = [&](Value map) {
    b.ifThen(b.less(row, operand.end), [&] { copy(map); });
  };
  if (!operand.restMap)
    return copyIfAny(operand.map);
  b.ifThenElse(
      b.less(getRowsFrom(b, operand, row), b.i32(operand.tile->getBoxRows())),
      [&] { copyIfAny(operand.restMap); }, [&] { copy(operand.map); });
}

/// Copies this block's part of the operand, or all of it.
static void copyPart(KernelBuilder &b, Value shared,
                     const SharedOperand &operand, const RingStage &stage) {
  const OperandTile &tile = *operand.tile;
  Value place =
      b.add(b.mul(stage.position.stage, operand.stride), operand.offset);
  Value origin = operand.origin;
  int64_t rows = tile.getPartRows();
  if (tile.getParts() > 1) {
    Value first = b.mul(operand.rank, rows);
    place = b.add(place, b.mul(first, tile.getRowBytes()));
    origin = b.add(origin, first);
  }
  Value k = b.mul(stage.k, tile.getBoxK());
  if (stage.firstK)
    k = b.add(k, stage.firstK);
  for (int64_t box = 0, e = rows / tile.getBoxRows(); box < e; ++box) {
    Value row = b.add(origin, box * tile.getBoxRows());
    SmallVector<Value> coordinates{k, row};
    if (tile.isTransposed())
      std::swap(coordinates[0], coordinates[1]);
    if (operand.batch)
      coordinates.push_back(operand.batch);
    Value to = b.offset(shared, b.add(place, box * tile.getBoxBytes()));
    auto copy = [&](Value map) {
      copyBox(b, map, to, stage.barrier, coordinates, operand.blocks);
    };
    if (stage.hasZeros && operand.end)
      copyInBounds(b, operand, row, copy);
    else
      copy(operand.map);
  }
}

void fp8::copyOperand(KernelBuilder &b, Value shared,
                      const SharedOperand &operand, const RingStage &stage) {
  auto copy = [&] { copyPart(b, shared, operand, stage); };
  // Without parts, the first block brings it for all.
  if (operand.blocks && operand.tile->getParts() == 1)
    b.ifThen(b.equal(operand.rank, 0), copy);
  else
    copy();
}

Value fp8::getBytesInBounds(KernelBuilder &b, const SharedOperand &operand) {
  const OperandTile &tile = *operand.tile;
  Value rows = b.min(getRowsFrom(b, operand, operand.origin),
                     b.i32(tile.getParts() * tile.getPartRows()));
  if (!operand.restMap)
    rows = b.mul(b.ceilDiv(rows, tile.getBoxRows()), tile.getBoxRows());
  return b.mul(rows, tile.getRowBytes());
}
