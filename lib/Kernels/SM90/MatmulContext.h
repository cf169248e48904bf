//===- MatmulContext.h - What all parts of a matmul share -------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_KERNELS_SM90_MATMULCONTEXT_H
#define FP8_LIB_KERNELS_SM90_MATMULCONTEXT_H

#include "../Matmul/MatmulParams.h"
#include "MatmulLayout.h"

namespace mlir::fp8::sm90 {

/// Named barriers: 1.. are the consumers' own, these come after.
inline constexpr int64_t kTurnBarrier = 4;
inline constexpr int64_t kAllConsumersBarrier = 6;

/// What is computed and how, where it lies, and which thread this is. "Rows"
/// are the side of the tensor core that comes in 64s, "cols" the one that comes
/// in 8s: A and B, or with swap_ab B and A.
class MatmulContext : public MatmulParams {
public:
  /// Reads the thread's number, at the start of the kernel with these
  /// parameters; `shared` is its dynamic shared memory.
  MatmulContext(KernelBuilder &b, const MatmulSpec &spec, GemmConfigAttr config,
                const MatmulLayout &layout, llvm::StringMap<Value> params,
                Value shared);

  bool isPingPong() const {
    return config.getSchedule() == GemmSchedule::PingPong;
  }
  bool isClustered() const { return config.getClusterSize() > 1; }
  /// Whether a warp copies factors to the ring.
  bool hasFactorWarp() const {
    return (layout.rowScales && !layout.rowScalesInBulk) ||
           (layout.colScales && !layout.colScalesInBulk);
  }
  const OperandSpec &getRowSpec() const {
    return config.getSwapAb() ? spec.b : spec.a;
  }
  const OperandSpec &getColSpec() const {
    return config.getSwapAb() ? spec.a : spec.b;
  }
  /// Parameter names of the rows' side: "a" or "b".
  StringRef getRowName() const { return config.getSwapAb() ? "b" : "a"; }
  StringRef getColName() const { return config.getSwapAb() ? "a" : "b"; }
  TileScheduler::Rank getTileRank() const;
  /// The number of this block's tile among all tiles of all clusters.
  Value getTileIndex(const Tile &tile) const;
  /// A barrier for all threads of the block, or of its cluster.
  void synchronize() const;

  GemmConfigAttr config;
  const MatmulLayout &layout;
  Value shared, thread, warp, lane;
  /// With clusters: which of the `cluster` neighbours this block is, and which
  /// of the `cluster_cols`; the number of the block counts the former first.
  Value rankOfRows, rankOfCols;
};

} // namespace mlir::fp8::sm90

#endif // FP8_LIB_KERNELS_SM90_MATMULCONTEXT_H
