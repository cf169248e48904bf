//===- MatmulConfigs.h - Configs that extents suggest -----------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_KERNELS_SM90_MATMULCONFIGS_H
#define FP8_LIB_KERNELS_SM90_MATMULCONFIGS_H

#include "../MachineLookup.h"
#include "MatmulGenerator.h"

#include <vector>

namespace mlir::fp8::sm90 {

/// What of a matmul its configs and their cost depend on.
class MatmulConfigs {
public:
  MatmulConfigs(const MatmulSpec &spec, GPUTargetAttr target);

  /// Up to `most` configs that fit, those first that cost least.
  SmallVector<GemmConfigAttr> getBest(size_t most) const;
  /// An estimate of the clocks.
  double getCost(const TileConfig &config) const;

private:
  /// The rows or the columns of a result and the operand they come from.
  struct Side;
  struct Waves;

  /// All that may be worth a thought.
  SmallVector<TileConfig> getConfigs() const;
  GemmConfigAttr getAttr(const TileConfig &config) const;
  static int64_t countTiles(ArrayRef<int64_t> extents, int64_t width);
  /// What rows of groups may turn out to be that have room for `room` each.
  void addCases(int64_t expected, int64_t room);
  /// The tiles that all groups of rows have, or may be expected to have.
  double countTilesOfGroups(int64_t width) const;
  /// Whether products of these operands have such subtiles and consumers.
  bool hasSchedule(const TileConfig &config) const;
  void addConfigs(bool swapped, SmallVectorImpl<TileConfig> &configs) const;
  /// Adds `config` with each number of parts of K that may pay with so many
  /// tiles.
  void addSplits(TileConfig config, int64_t tiles,
                 SmallVectorImpl<TileConfig> &configs) const;
  /// Adds `config` with each way to lift packed weights and to stage results.
  void addStaged(TileConfig config, SmallVectorImpl<TileConfig> &configs) const;
  /// Adds `config` with stages of as many K blocks as make rows of codes that
  /// bulk copies bring as fast as any.
  void addWide(TileConfig config, SmallVectorImpl<TileConfig> &configs) const;
  /// Whether parts of K that blocks of a cluster add up were measured to pay.
  bool gainsByClusters() const;
  /// Whether consumers may make bf16 of codes themselves, of what the tensor
  /// core has in 64s: where the machine says what that takes.
  bool canLiftInRegisters() const;
  bool liftsInRegisters(const TileConfig &config) const {
    return spec.b.isLifted() && config.lifters == 0;
  }
  /// Whether results reach memory by bulk copies.
  bool isStoredInBulk(const TileConfig &config) const;
  /// Slabs that bulk copies store of a subtile.
  int64_t getSlabs(const TileConfig &config) const;
  /// Whether all of a tile may lie in its buffers before it is stored.
  bool canStageTile(const TileConfig &config) const;
  /// Takes as many stages as there is room for; false if that is too few.
  bool setStages(TileConfig &config) const;
  Side getSide(const TileConfig &config, bool ofRows) const;
  /// Where the extents are these.
  double getCostOfExtents(const TileConfig &config) const;
  /// Those that a board without bounds to its power would take.
  double getClocks(const TileConfig &config) const;
  /// What is left of the clocks of consumers that share K with factors of 32.
  double getShareOfParts(const TileConfig &config) const;
  Waves getWaves(const TileConfig &config) const;
  /// Those of a producer for a part of K: copies into shared memory, through
  /// the port to L2, and their latency. `outOfBounds` is of Side.
  double getCopyClocks(const TileConfig &config, const Waves &waves,
                       double Side::*outOfBounds) const;
  /// Those until the slower of consumers and producer is through all waves.
  double getComputeClocks(const TileConfig &config, const Waves &waves) const;
  /// Those of the warpgroups that lift packed weights, for one K block.
  double getLiftClocks(const TileConfig &config) const;
  /// Those until memory has delivered everything.
  double getMemoryClocks(const TileConfig &config, const Waves &waves) const;
  /// Those that the power leaves to the products.
  double getPowerClocks(const TileConfig &config) const;
  double getBlockClocks(const TileConfig &config, double activeBlocks) const;
  double getStoreClocks(const TileConfig &config) const;

  const OperandSpec &getRows(bool swapped) const {
    return swapped ? spec.b : spec.a;
  }
  const OperandSpec &getCols(bool swapped) const {
    return swapped ? spec.a : spec.b;
  }

  const MatmulSpec &spec;
  GPUTargetAttr target;
  WgmmaModelAttr model;
  /// Extents of each result; the sums of these. Rows that are masked are those
  /// that a group may have, and of all groups those that may be expected.
  SmallVector<int64_t> ms, ns;
  int64_t m, n, k, batch, kBlocks, resultBytes;
  /// How many groups the rows are of: then `ms` are those of a small one and of
  /// a large one.
  int64_t groupsOfRows = 1;
  /// In a case of rows that are masked, how many groups have each of `ms`.
  SmallVector<int64_t> groupsOfCounts;
  /// What masked rows may turn out to be, all as likely.
  std::vector<MatmulConfigs> cases;
  bool storesInBulk;
};

/// Whether the subtiles of a tile share the code of an epilogue.
GemmEpilogue getMatmulEpilogue(const MatmulSpec &spec, int64_t subtiles,
                               int64_t cols, bool storesInBulk,
                               WgmmaModelAttr model);

} // namespace mlir::fp8::sm90

#endif // FP8_LIB_KERNELS_SM90_MATMULCONFIGS_H
