//===- RowGroups.h - What selection takes groups for ------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_KERNELS_MATMUL_ROWGROUPS_H
#define FP8_LIB_KERNELS_MATMUL_ROWGROUPS_H

#include "fp8/Kernels/Matmul/MatmulSpec.h"

#include <cmath>

namespace mlir::fp8 {

/// How many tokens there may be expected to be: of what is masked, some; of
/// all groups together.
inline int64_t getExpectedTokens(const MatmulSpec &spec, int64_t extent) {
  if (!spec.isMasked())
    return extent;
  const MatmulSpec::Groups &groups = *spec.getGroups();
  if (!ShapedType::isDynamic(groups.expectedM))
    extent = std::clamp<int64_t>(groups.expectedM, 1, extent);
  return extent * groups.count;
}

/// Groups of rows, of which only the mean is known when a config is selected;
/// of one it is what it has.
struct RowGroups {
  /// By how much they differ from the mean.
  static constexpr double kSpread = 0.3;

  int64_t rows, groups;

  /// Rows of a group that has such a share of the mean.
  int64_t getRows(double share) const {
    return std::max<int64_t>(std::llround(share * double(rows) / groups), 1);
  }
  int64_t getMost() const { return groups > 1 ? getRows(1 + kSpread) : rows; }
  /// The tiles of so many rows that all groups may be expected to have: unequal
  /// ones end anywhere in a tile.
  double countTiles(int64_t width) const {
    if (groups == 1)
      return llvm::divideCeil(rows, width);
    double mean = double(rows) / groups;
    bool isOne = getMost() <= width;
    return groups * (isOne ? 1 : std::max(mean / width, 0.5) + 0.5);
  }
};

} // namespace mlir::fp8

#endif // FP8_LIB_KERNELS_MATMUL_ROWGROUPS_H
