//===- TensorCoreInstruction.h - Sums of one instruction --------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_RUNTIME_CPU_TENSORCOREINSTRUCTION_H
#define FP8_LIB_RUNTIME_CPU_TENSORCOREINSTRUCTION_H

#include "TensorCore/Dot.h"
#include "fp8/Runtime/Gemm.h"

#include <memory>

namespace fp8rt::cpu {

/// Rows and columns of the result that are worked on together.
constexpr int64_t kTileRows = 16, kTileColumns = fp8emu::kMaxColumns;

/// Where a tile of the result is.
struct TensorCoreTile {
  int64_t batch, row, column, rows, columns;
};

/// One matrix of a batch.
struct Matrix {
  float *data;
  int64_t rowStride, columnStride;

  Matrix(const fp8rt_memref3d_f32 &memref, int64_t batch)
      : data(memref.data + memref.offset + batch * memref.strides[0]),
        rowStride(memref.strides[1]), columnStride(memref.strides[2]) {}
  float &at(int64_t row, int64_t column) const {
    return data[row * rowStride + column * columnStride];
  }
};

/// What instructions multiply.
struct TensorCoreOperands {
  const fp8rt_memref3d_f32 &a, &b;
  fp8emu::Element typeA, typeB;
  bool isWide; /* sums of 25 bits, of 8-bit types too */
  /// Each is of `factorK` elements; null if there are none.
  const fp8rt_memref3d_f32 *factorsA = nullptr, *factorsB = nullptr;
  int64_t factorK = 0;
  bool inHalves = false; /* an instruction adds half of its K, then the rest */
};

/// A tile's rows by its columns, over the few of K that one instruction takes.
class TensorCoreInstruction {
public:
  static std::unique_ptr<TensorCoreInstruction>
  create(const TensorCoreOperands &operands, const TensorCoreTile &tile);

  virtual ~TensorCoreInstruction() = default;

  /// Takes operands from `k` of K on; beyond its end they are zeros.
  virtual void load(int64_t k) = 0;
  /// sums[column] = that, or 0 if `fresh`, plus the row's products. There are
  /// kTileColumns of them: some are computed that the tile does not have.
  virtual void addRow(int64_t row, bool fresh, float *sums) = 0;
  /// Products of a sum.
  unsigned getCount() const { return count; }

protected:
  TensorCoreInstruction(const TensorCoreOperands &operands,
                        const TensorCoreTile &tile, unsigned count)
      : operands(operands), tile(tile), a(operands.a, tile.batch),
        b(operands.b, tile.batch), count(count) {}

  /// How many of an instruction's products there are from `k` on.
  int64_t getInside(int64_t k) const;

  const TensorCoreOperands &operands;
  const TensorCoreTile &tile;
  Matrix a, b;
  unsigned count;
};

} // namespace fp8rt::cpu

#endif // FP8_LIB_RUNTIME_CPU_TENSORCOREINSTRUCTION_H
