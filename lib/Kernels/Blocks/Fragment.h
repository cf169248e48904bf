//===- Fragment.h - Which elements a thread holds ---------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_KERNELS_BLOCKS_FRAGMENT_H
#define FP8_LIB_KERNELS_BLOCKS_FRAGMENT_H

#include "KernelBuilder.h"
#include "llvm/Support/MathExtras.h"

namespace mlir::fp8 {

/// Two neighbouring elements of a row.
using Pair = std::array<Value, 2>;

/// Which elements of a subtile of a tile, a number of its rows, a thread gets
/// from the tensor core: an architecture's, or a way to read its accumulators.
struct FragmentLayout {
  struct Place {
    /// The number of the thread's row, and the columns from its first column.
    int64_t row, col;
  };

  /// A warp's first row comes so many rows after the one before's, and so many
  /// of its lanes share a row, two columns each.
  int64_t warpRows, lanesPerRow;
  /// Rows of the thread, from its first one.
  SmallVector<int64_t> rows;
  /// Where registers 2 p and 2 p + 1 are: neighbouring columns of a row.
  SmallVector<Place> pairs;
  /// Whether a warp holds 16 rows as 8x8 matrices, those of rows 0-7 and 8-15
  /// after each other, that stmatrix takes as they are.
  bool isMatrices = false;
  /// From the first row of some lanes to that of the next ones.
  int64_t rowStep = 1;

  /// Sums of 64 rows and so many columns, a multiple of 8, that a warpgroup
  /// has: lane l of warp w holds in register i the element of row 16 w + l / 4
  /// + 8 ((i >> 1) & 1) and column 8 (i >> 2) + 2 (l & 3) + (i & 1) (PTX ISA,
  /// "Register Fragments for wgmma.mma_async.m64nNk32", and the accumulators of
  /// mma.m16n8, one after the other). It is that of all operand types.
  static FragmentLayout ofMatrices(int64_t cols) {
    FragmentLayout layout{/*warpRows=*/16, /*lanesPerRow=*/4, /*rows=*/{0, 8},
                          /*pairs=*/{}, /*isMatrices=*/true};
    for (int64_t col = 0; col < cols; col += 8)
      for (int64_t row = 0; row < 2; ++row)
        layout.pairs.push_back({row, col});
    return layout;
  }

  /// The same where a lane's rows are neighbours: those of a product whose rows
  /// its operand has so.
  static FragmentLayout ofNeighbours(int64_t cols) {
    FragmentLayout layout = ofMatrices(cols);
    layout.rows = {0, 1};
    layout.rowStep = 2;
    layout.isMatrices = false;
    return layout;
  }

  /// Where the first element of a thread is, by its number in the warpgroup.
  Value getFirstRow(KernelBuilder &b, Value thread) const {
    Value lane = b.bitAnd(thread, 31);
    Value row = b.shiftRight(lane, llvm::Log2_64(lanesPerRow));
    return b.add(b.mul(b.shiftRight(thread, 5), warpRows),
                 rowStep == 1 ? row : b.mul(row, rowStep));
  }
  Value getFirstCol(KernelBuilder &b, Value thread) const {
    return b.mul(b.bitAnd(b.bitAnd(thread, 31), lanesPerRow - 1), 2);
  }
  int64_t getNumCols() const {
    return 2 * lanesPerRow * static_cast<int64_t>(pairs.size() / rows.size());
  }
  /// The columns of the first row's pairs.
  SmallVector<int64_t> getCols() const {
    SmallVector<int64_t> cols;
    for (Place place : pairs)
      if (place.row == 0)
        cols.push_back(place.col);
    return cols;
  }
};

/// One subtile of a tile as a thread holds it. Rows and columns are those of
/// the tensor core: with `swapped` operands the row is an index of N and the
/// column one of M.
struct Fragment {
  /// Row and column of the thread's first element.
  Value row, col;
  bool swapped;

  Value getRow(KernelBuilder &b, const FragmentLayout &layout,
               int64_t number) const {
    return b.add(row, layout.rows[number]);
  }
  /// Element `e` of the pair at column `offset` of the thread's.
  Value getCol(KernelBuilder &b, int64_t offset, int64_t e) const {
    return b.add(col, offset + e);
  }
};

} // namespace mlir::fp8

#endif // FP8_LIB_KERNELS_BLOCKS_FRAGMENT_H
