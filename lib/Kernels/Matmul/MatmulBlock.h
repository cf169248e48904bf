//===- MatmulBlock.h - The threads of a matmul kernel -----------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_KERNELS_MATMUL_MATMULBLOCK_H
#define FP8_LIB_KERNELS_MATMUL_MATMULBLOCK_H

#include "MatmulParams.h"

namespace mlir::fp8 {

/// What all parts of a matmul kernel know, whatever the architecture: its
/// parameters, which thread this is, and how to meet the others. "Rows" are the
/// side that the tensor core has along its rows, "cols" the other one: A and B,
/// or, if they are swapped, B and A.
class MatmulBlock : public MatmulParams {
public:
  /// Reads the thread's number, at the start of the kernel with these
  /// parameters; `shared` is its dynamic shared memory.
  MatmulBlock(KernelBuilder &b, const MatmulSpec &spec, bool isSwapped,
              int64_t clusterSize, llvm::StringMap<Value> params, Value shared);

  const OperandSpec &getRowSpec() const { return isSwapped ? spec.b : spec.a; }
  const OperandSpec &getColSpec() const { return isSwapped ? spec.a : spec.b; }
  /// Parameter names of the rows' side: "a" or "b".
  StringRef getRowName() const { return isSwapped ? "b" : "a"; }
  StringRef getColName() const { return isSwapped ? "a" : "b"; }
  /// Where a block is among those of its cluster along M and N, which it is
  /// along rows and along columns.
  TileScheduler::Rank getTileRank(Value ofRows, Value ofCols) const;
  bool isClustered() const { return rank != Value(); }
  /// A barrier for all threads of the block, or of its cluster.
  void synchronize() const;
  /// Where the groups of a grouped matmul begin, if it is one: a table, at
  /// `offset` of shared memory, that all `threads` make. Tiles of all blocks of
  /// a cluster have `tileM` rows together.
  std::optional<TileScheduler::Groups>
  buildGroups(int64_t offset, int64_t tileM, int64_t threads) const;

  Value shared, thread, warp, lane;
  /// The number of the block in its cluster; null if it is alone.
  Value rank;

private:
  bool isSwapped;
};

} // namespace mlir::fp8

#endif // FP8_LIB_KERNELS_MATMUL_MATMULBLOCK_H
