//===- OperandTile.h - An operand in shared memory --------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_KERNELS_BLOCKS_OPERANDTILE_H
#define FP8_LIB_KERNELS_BLOCKS_OPERANDTILE_H

#include "KernelBuilder.h"
#include "fp8/Kernels/Matmul/MatmulSpec.h"

namespace mlir::fp8 {

/// Bytes of K in a stage of the ring where K is innermost: a row of the widest
/// swizzle atom.
inline constexpr int64_t kRowBytes = 128;

/// The place of byte `linear` (i32) in rows of `width` bytes, 16 to 128, as
/// bulk copies swizzle them (PTX ISA, "Swizzling Modes"): address bits 4.. are
/// exclusive-ored with bits 7..: 3, 2, 1 or none of them.
Value swizzleBytes(KernelBuilder &b, Value linear, int64_t width);

/// How an operand's part of a stage lies in shared memory, as bulk tensor
/// copies write it and tensor cores read it (PTX ISA, "Asynchronous Warpgroup
/// Level Matrix Shared Memory Layout" and "Shared Memory Layout and Swizzling"
/// of tcgen05): boxes, one after the other, whose rows are swizzled in groups
/// of 8.
///
/// - K innermost: one box with a row of 128 bytes of K for each row;
/// - rows innermost: boxes of some rows, with a line of `swizzle` bytes for
///   each K.
///
/// Codes that are lifted before tensor cores read them lie in rows of fewer
/// bytes, and are swizzled by as many.
class OperandTile {
public:
  /// `extent` rows of an operand, a multiple of 8, that `blocks` of a cluster
  /// share; swizzled like `part` of them, which come from a tensor of their
  /// own, if that is not 0.
  OperandTile(const OperandSpec &operand, int64_t extent, int64_t blocks,
              int64_t part = 0);
  /// The codes of as much K as `blocks` rows of what they are lifted to have.
  static OperandTile getPacked(OperandTile lifted, Lifting lifting,
                               int64_t blocks);

  bool isTransposed() const { return major == Major::MN; }
  Type getElementType() const { return elementType; }
  /// Elements of K, and what they are to a tensor map, to which two that share
  /// a byte are one.
  int64_t getBlockK() const { return getBoxK() * sharing; }
  int64_t getBoxK() const { return rowBytes / elementBytes; }
  int64_t getBytes() const { return bytes; }
  /// Bytes of a row, or of a line times the boxes beside it.
  int64_t getRowBytes() const { return rowBytes; }
  /// Bytes of the innermost side of a box: 128, 64, 32, or 16, not swizzled.
  int64_t getSwizzle() const { return swizzle; }

  /// Extents of a box, the innermost first, and its bytes.
  SmallVector<int64_t> getBox() const;
  int64_t getBoxBytes() const;
  /// Rows that a box brings.
  int64_t getBoxRows() const { return boxRows; }

  /// Whether a box of fewer rows lies as the first ones of a whole box do.
  bool canTakeTail() const { return !isTransposed(); }

  /// How many blocks of the cluster bring a part of it: all that share it, or
  /// one where parts would be no whole swizzle atoms.
  int64_t getParts() const { return parts; }
  int64_t getPartRows() const { return bytes / rowBytes / parts; }

  /// K of an instruction, of which it takes 32 bytes.
  int64_t getInstructionK() const { return 32 / elementBytes * sharing; }
  /// From one instruction's K to the next one's.
  int64_t getStepBytes() const {
    return isTransposed() ? getInstructionK() * swizzle : 32;
  }
  /// Fields of a shared memory matrix descriptor (PTX ISA, "Matrix
  /// Descriptor"): byte offsets of the boxes of a tile and of its groups of 8
  /// rows, or with rows innermost and without a swizzle the other way around.
  /// The leading one is ignored with K innermost and a swizzle.
  int64_t getLeadingOffset() const {
    return !isTransposed() ? 16 : swizzle == 16 ? 8 * 16 : getBoxBytes();
  }
  int64_t getStrideOffset() const {
    return isTransposed() && swizzle == 16 ? getBoxBytes() : 8 * swizzle;
  }
  /// From one group of 64 rows to the next, where all are multiples of 64.
  int64_t getSliceBytes() const { return 64 * kRowBytes; }

  /// Where a byte of a box is that would be at `linear` (i32) without swizzle.
  Value getSwizzled(KernelBuilder &b, Value linear) const {
    return swizzleBytes(b, linear, swizzle);
  }

  /// Clears what is of K before `begin` or from `end` (i32, elements) on in the
  /// operand's part of a stage, which begins at `stage` in shared memory; this
  /// is thread `thread` of `threads`.
  void clearOutside(KernelBuilder &b, Value stage, Value begin, Value end,
                    Value thread, int64_t threads) const;

private:
  Type elementType;
  Major major;
  int64_t elementBytes, sharing, bytes, parts, swizzle, boxRows;
  int64_t rowBytes = kRowBytes;

  /// The widest swizzle that divides so many rows.
  int64_t getSwizzle(int64_t rows) const;
};

} // namespace mlir::fp8

#endif // FP8_LIB_KERNELS_BLOCKS_OPERANDTILE_H
