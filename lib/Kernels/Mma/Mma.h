//===- Mma.h - Tensor cores of single warps ---------------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_KERNELS_MMA_MMA_H
#define FP8_LIB_KERNELS_MMA_MMA_H

#include "../Blocks/Fragment.h"
#include "../Blocks/OperandTile.h"

namespace mlir::fp8::mma {

/// A register's worth of an operand in each lane, times four: 16 rows, or
/// columns, by 32 bytes of K.
using Words = std::array<Value, 4>;

/// Words of lanes that have factors of 16 rows and of 16 columns, and the byte
/// that begins those of an instruction; null without factors.
struct ScaleWords {
  Value rows, cols;
  int64_t byte = 0;
};

/// mma.sync.m16n8: 16 rows by 8 columns, over 32 bytes of K.
class Mma {
public:
  /// `factors` is the type of factors that it multiplies, null for none;
  /// `expands` if codes become f16, which are multiplied.
  Mma(KernelBuilder &b, Type typeA, Type typeB, Type factors, bool expands)
      : b(b), typeA(typeA), typeB(typeB), factors(factors),
        expands(expands && typeA.getIntOrFloatBitWidth() == 8) {}

  /// Whether the instruction multiplies elements of this type, with factors or
  /// without.
  static bool takes(Type type, bool hasFactors);

  /// Adds products of 16 rows and 16 columns to the eight sums of a lane, those
  /// of 8 columns after those of the 8 before: FragmentLayout::ofMatrices.
  void multiply(const Words &rows, const Words &cols, const ScaleWords &scales,
                MutableArrayRef<Value> sums);

private:
  std::string getName() const;
  /// `half` is which of 16 columns they are.
  void multiplyOne(const Words &rows, Value low, Value high,
                   const ScaleWords &scales, int64_t half,
                   MutableArrayRef<Value> sums);

  /// The same of 8 columns, with codes as f16.
  void multiplyExpanded(const Words &rows, Value low, Value high,
                        MutableArrayRef<Value> sums);

  KernelBuilder &b;
  Type typeA, typeB, factors;
  bool expands;
};

/// Four matrices of 8 rows of 16 bytes, whose addresses lanes bring (ldmatrix).
Words loadMatrices(KernelBuilder &b, Value address, bool transposed);

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

} // namespace mlir::fp8::mma

#endif // FP8_LIB_KERNELS_MMA_MMA_H
