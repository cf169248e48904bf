//===- OperandCopy.h - Operands to stages of a ring -------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_KERNELS_BLOCKS_OPERANDCOPY_H
#define FP8_LIB_KERNELS_BLOCKS_OPERANDCOPY_H

#include "OperandTile.h"
#include "Ring.h"

namespace mlir::fp8 {

/// Where the boxes of one K block go, and when they are there.
struct RingStage {
  RingPosition position;
  /// The barrier may be in the other one of two blocks (shared::cluster).
  Value barrier, k;
  /// Elements of K before block 0; null for none.
  Value firstK = {};
  /// Whether an earlier block of this tile's K was copied to the stage, so that
  /// it has zeros where the tile is out of bounds.
  bool hasZeros = false;
};

/// An operand of a tile: its first row, where it lies in the first stage, and
/// bytes to the next one.
struct SharedOperand {
  Value map;
  const OperandTile *tile;
  Value origin;
  /// Null without batches.
  Value batch;
  int64_t offset, stride;
  /// Which of the blocks of the cluster that share it this one is, and all of
  /// them; null for this one alone.
  Value rank, blocks;
  /// Where the operand's rows end (i32), if stages that have zeros there
  /// receive rows in bounds alone; and the map of boxes with what is left of
  /// them, if the operand can have such. Otherwise null.
  Value end = {}, restMap = {};
};

/// Copies this block's part of the operand to shared memory, which starts at
/// `shared`, or all of it. One thread.
///
/// Why rows out of bounds are left out: bulk copies fill them at 1 to 3 KiB a
/// clock for the whole chip (benchmarks/results/bulk_zeros.txt). Of a product
/// of 126 tiles 18, of which half is out of bounds, held up all by a fifth.
void copyOperand(KernelBuilder &b, Value shared, const SharedOperand &operand,
                 const RingStage &stage);

/// What copies to a stage that has zeros bring of a tile's operand, in bytes
/// (i32): of all blocks of the cluster that share it.
Value getBytesInBounds(KernelBuilder &b, const SharedOperand &operand);

} // namespace mlir::fp8

#endif // FP8_LIB_KERNELS_BLOCKS_OPERANDCOPY_H
