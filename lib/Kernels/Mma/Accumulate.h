//===- Accumulate.h - Sums over K of a tile ---------------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_KERNELS_MMA_ACCUMULATE_H
#define FP8_LIB_KERNELS_MMA_ACCUMULATE_H

#include "Copies.h"
#include "Factors.h"
#include "Mma.h"
#include "Promotion.h"

namespace mlir::fp8::mma {

/// The main loop: all threads copy K blocks of a tile to stages of shared
/// memory, and multiply those that have come.
class Accumulator {
public:
  Accumulator(const MatmulContext &kernel, const Tile &tile);

  /// The sums of each subtile of the warpgroup. `prepare` is called when the
  /// first copies are under way.
  SmallVector<SmallVector<Value>>
  accumulate(llvm::function_ref<void()> prepare);

private:
  /// Copies block `k`, if the tile has it, and ends a group of copies.
  void copy(Value k, Value stage) const;
  /// Clears what of block `k`, in a stage, is another group's K.
  void clearOthers(Value k, Value stage) const;
  /// Adds the products of a stage to `sums`, subtile after subtile.
  void multiplyFast(Value stage, MutableArrayRef<Value> sums);
  void multiplyPromoted(Value stage, MutableArrayRef<Value> sums);
  Words loadRows(Value stage, int64_t subtile, int64_t step) const;
  Words loadCols(Value stage, int64_t col, int64_t step) const;
  /// Words of factors, null without such, and the first byte in them.
  Value loadRowFactors(Value stage, int64_t subtile, int64_t step) const;
  Value loadColFactors(Value stage, int64_t col, int64_t step) const;
  int64_t getFactorByte(int64_t step) const {
    return step * kernel.layout.factorsOfStep % 4;
  }
  int64_t getSteps() const {
    return kernel.layout.rows.getBlockK() /
           kernel.layout.rows.getInstructionK();
  }

  const MatmulContext &kernel;
  KernelBuilder &b;
  GemmConfigAttr config;
  const Tile &tile;
  SmallVector<OperandLoader> loaders;
  SmallVector<FactorLoader> factorLoaders;
  Promotion promotion;
  FragmentLoader rows, cols;
  Mma mma;
};

} // namespace mlir::fp8::mma

#endif // FP8_LIB_KERNELS_MMA_ACCUMULATE_H
