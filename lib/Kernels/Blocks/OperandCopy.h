//===- OperandCopy.h - Operands to slots of a ring --------------*- C++ -*-===//
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
struct RingSlot {
  RingPosition position;
  /// `batch` is null without batches. The barrier may be in the other one of
  /// two blocks (shared::cluster).
  Value barrier, k, batch;
  /// Elements of K before block 0; null for none.
  Value firstK = {};
};

/// An operand of a tile: its first row, where it lies in the first slot, and
/// bytes to the next one.
struct SharedOperand {
  Value map;
  const OperandTile &tile;
  Value origin;
  int64_t offset, stride;
  /// Which of the blocks of the cluster that share it this one is, and all of
  /// them; null for this one alone.
  Value rank, blocks;
};

/// Copies this block's part of the operand to shared memory, which starts at
/// `shared`, or all of it. One thread.
void copyOperand(KernelBuilder &b, Value shared, const SharedOperand &operand,
                 const RingSlot &slot);

} // namespace mlir::fp8

#endif // FP8_LIB_KERNELS_BLOCKS_OPERANDCOPY_H
