//===- Mma.h - Tensor cores of single warps ---------------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_KERNELS_SM89_MMA_H
#define FP8_LIB_KERNELS_SM89_MMA_H

#include "../Blocks/Fragment.h"
#include "../Blocks/OperandTile.h"

namespace mlir::fp8::sm89 {

/// A register's worth of an operand in each lane, times four: 16 rows, or
/// columns, by 32 bytes of K.
using Words = std::array<Value, 4>;

/// mma.sync.m16n8: 16 rows by 8 columns, over 32 bytes of K.
class Mma {
public:
  Mma(KernelBuilder &b, Type typeA, Type typeB)
      : b(b), typeA(typeA), typeB(typeB) {}

  /// Whether the instruction multiplies elements of this type.
  static bool takes(Type type);

  /// Adds products of 16 rows and 16 columns to the eight sums of a lane, those
  /// of 8 columns after those of the 8 before: FragmentLayout::ofMatrices.
  void multiply(const Words &rows, const Words &cols,
                MutableArrayRef<Value> sums);

private:
  void multiplyOne(const Words &rows, Value low, Value high,
                   MutableArrayRef<Value> sums);

  KernelBuilder &b;
  Type typeA, typeB;
};

/// Loads fragments of an operand that lies in shared memory as `tile` says.
class FragmentLoader {
public:
  /// `ofRows` is whether it is the instruction's rows, for which `first` is the
  /// warp's first one (i32, a multiple of 16; null for 0).
  FragmentLoader(KernelBuilder &b, const OperandTile &tile, bool ofRows,
                 Value lane, Value first);

  /// 16 rows from `row` on, of the `step`-th 32 bytes of K; the tile begins at
  /// `base`.
  Words load(Value base, int64_t row, int64_t step) const;

private:
  Value getOffset(int64_t row, int64_t step) const;

  KernelBuilder &b;
  OperandTile tile;
  /// What the lane's address has of its own: the row and the line, or with K
  /// innermost bytes of its row and of K there.
  Value row, k;
};

} // namespace mlir::fp8::sm89

#endif // FP8_LIB_KERNELS_SM89_MMA_H
