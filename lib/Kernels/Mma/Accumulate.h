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
  /// Waits for block `k`, in a stage, until all threads have it and are
  /// through with what they read before.
  void waitFor(Value k, Value stage) const;
  /// What a warp multiplies of 32 bytes of K: fragments, and words of factors,
  /// null without such.
  struct Operands {
    SmallVector<Words> rows, cols;
    SmallVector<Value> rowFactors, colFactors;
  };
  Operands load(Value stage, int64_t step) const;
  /// Their products, added to `sums`, subtile after subtile.
  void multiply(const Operands &operands, int64_t step,
                MutableArrayRef<Value> sums);
  /// A block in a stage, of which `operands` are the first. Those of the block
  /// behind it, in stage `next`, are loaded to `operands` before the last ones
  /// are multiplied, so that the tensor core has work while warps wait.
  void multiplyFast(Value k, Value stage, Value next, Operands &operands,
                    MutableArrayRef<Value> sums);
  void multiplyPromoted(Value stage, MutableArrayRef<Value> sums);
  Words loadRows(Value stage, int64_t subtile, int64_t step) const;
  Words loadCols(Value stage, int64_t col, int64_t step) const;
  /// The loop over K, which returns the sums.
  SmallVector<Value> loopFast();
  SmallVector<Value> loopPromoted();
  /// The stages before and behind one in the ring.
  Value getPrevious(Value stage) const;
  Value getNext(Value stage) const;
  /// Words of factors, null without such, and the first byte in them.
  Value loadRowFactors(Value stage, int64_t subtile, int64_t step) const;
  Value loadColFactors(Value stage, int64_t col, int64_t step) const;
  int64_t getFactorByte(int64_t step) const {
    return step * kernel.layout.factorsOfStep % 4;
  }
  /// Whether a block's first operands are loaded while the one before is
  /// multiplied. With two stages copies have less time then, which is enough
  /// where a thread has many sums.
  bool prefetches() const {
    return config.getStages() > 2 ||
           kernel.layout.subtiles * kernel.layout.getRegisters() >= 128;
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
