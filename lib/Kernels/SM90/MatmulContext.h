//===- MatmulContext.h - What all parts of a matmul share -------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_KERNELS_SM90_MATMULCONTEXT_H
#define FP8_LIB_KERNELS_SM90_MATMULCONTEXT_H

#include "../Blocks/Ring.h"
#include "../Matmul/MatmulBlock.h"
#include "MatmulLayout.h"

namespace mlir::fp8::sm90 {

/// Named barriers: 1.. are the consumers' own, these come after.
inline constexpr int64_t kTurnBarrier = 4;
inline constexpr int64_t kAllConsumersBarrier = 6;

/// A matmul kernel while it is built: its block, its config, and where it keeps
/// what. Rows come in 64s, cols in 8s.
class MatmulContext : public MatmulBlock {
public:
  /// At the start of the kernel.
  MatmulContext(KernelBuilder &b, const MatmulSpec &spec, GemmConfigAttr config,
                const MatmulLayout &layout, llvm::StringMap<Value> params,
                Value shared);

  bool isPingPong() const {
    return config.getSchedule() == GemmSchedule::PingPong;
  }
  /// Whether a warp copies factors to the ring.
  bool hasFactorWarp() const {
    return (layout.rowScales && !layout.rowScalesInBulk) ||
           (layout.colScales && !layout.colScalesInBulk);
  }
  /// Whether a warp copies those of packed weights.
  bool hasLiftFactorWarp() const {
    return layout.lift && copiesFactors(layout.lift->lifting);
  }
  /// Warps that fill the ring in turns: a stage of few bytes takes one as long
  /// as one of many, so that where consumers have parts of K two share these. A
  /// stage is always filled by the same one.
  int64_t getProducerTurns() const {
    return config.getBlockParts() > 1 ? 2 : 1;
  }
  /// A tile's K blocks in the order in which the ring has them: [first, last)
  /// of its numbers, and what runs for each. Where consumers sum parts of K the
  /// numbers are of rounds, in which each of them has a block: a part that is
  /// shorter has its last one, or the next part's first, once more. Of warps
  /// that take turns one runs for the blocks of its own parts, and passes the
  /// others' stages in the ring.
  std::pair<Value, Value> getBlocks(const Tile &tile) const;
  SmallVector<Value>
  loopOverBlocks(const Tile &tile, Value first, Value last, ValueRange carried,
                 llvm::function_ref<SmallVector<Value>(Value, ValueRange)> body,
                 Ring &ring, int64_t turn) const;
  /// Where part `part` (i32) of the tile's K begins, and with the number of
  /// parts where K ends.
  Value getPartBegin(const Tile &tile, Value part) const;

  /// Blocks that share a tile, if they are a cluster.
  std::optional<ClusterSplitK> getClusterSplitK() const;

  TileScheduler::Rank getTileRank() const;
  /// The number of this block's tile among all tiles of all clusters.
  Value getTileIndex(const Tile &tile) const;

  GemmConfigAttr config;
  const MatmulLayout &layout;
  /// With clusters: which neighbour along rows this block is, and which
  /// along columns; the number of the block counts the former first.
  Value rankOfRows, rankOfCols;
};

} // namespace mlir::fp8::sm90

#endif // FP8_LIB_KERNELS_SM90_MATMULCONTEXT_H
