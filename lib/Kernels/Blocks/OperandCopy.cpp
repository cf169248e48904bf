//===- OperandCopy.cpp - Operands to slots of a ring ----------------------===//
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

/// Copies this block's part of the operand, or all of it.
static void copyPart(KernelBuilder &b, Value shared,
                     const SharedOperand &operand, const RingSlot &slot) {
  const OperandTile &tile = operand.tile;
  Value place =
      b.add(b.mul(slot.position.stage, operand.stride), operand.offset);
  Value origin = operand.origin;
  int64_t rows = tile.getPartRows();
  if (tile.getParts() > 1) {
    Value first = b.mul(operand.rank, rows);
    place = b.add(place, b.mul(first, kRowBytes));
    origin = b.add(origin, first);
  }
  Value k = b.mul(slot.k, tile.getBoxK());
  if (slot.firstK)
    k = b.add(k, slot.firstK);
  for (int64_t box = 0, e = rows / tile.getBoxRows(); box < e; ++box) {
    Value row = b.add(origin, box * tile.getBoxRows());
    SmallVector<Value> coordinates{k, row};
    if (tile.isTransposed())
      std::swap(coordinates[0], coordinates[1]);
    if (slot.batch)
      coordinates.push_back(slot.batch);
    Value to = b.offset(shared, b.add(place, box * tile.getBoxBytes()));
    if (operand.blocks)
      bulkLoadToCluster(b, operand.map, to, slot.barrier, coordinates,
                        operand.blocks);
    else if (cast<LLVM::LLVMPointerType>(slot.barrier.getType())
                 .getAddressSpace() == 7)
      bulkLoadOfPair(b, operand.map, to, slot.barrier, coordinates);
    else
      bulkLoad(b, operand.map, to, slot.barrier, coordinates);
  }
}

void fp8::copyOperand(KernelBuilder &b, Value shared,
                      const SharedOperand &operand, const RingSlot &slot) {
  auto copy = [&] { copyPart(b, shared, operand, slot); };
  // Without parts, the first block brings it for all.
  if (operand.blocks && operand.tile.getParts() == 1)
    b.ifThen(b.equal(operand.rank, 0), copy);
  else
    copy();
}
