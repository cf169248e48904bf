//===- MatmulLayout.h - Shared memory and registers of matmuls --*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_KERNELS_SM90_MATMULLAYOUT_H
#define FP8_LIB_KERNELS_SM90_MATMULLAYOUT_H

#include "../Blocks/ClusterSplitK.h"
#include "../Blocks/OperandTile.h"
#include "SM90Dialect.h"

#include <optional>

namespace mlir::fp8::sm90 {

/// What of a config a tile's time and registers depend on; "rows" and "cols" as
/// MatmulContext has them.
struct TileConfig {
  int64_t rows, cols;
  GemmSchedule schedule;
  int64_t consumers;
  bool swapped;
  int64_t clusterRows, clusterCols, splitK, stages, staging;
  int64_t lifters = 1, liftWarps = 4, stageBlocks = 1;
  bool clusterK = false;

  /// Stages that are lifted at the same time, if any are.
  int64_t getTurns() const { return lifters ? 4 * lifters / liftWarps : 1; }

  static TileConfig get(GemmConfigAttr config);

  bool isPingPong() const { return schedule == GemmSchedule::PingPong; }
  int64_t getClusterSize() const { return clusterRows * clusterCols; }
  /// Whether copies leave out rows out of bounds where stages have zeros. Not
  /// in clusters of more than two blocks: that each of a block's neighbours
  /// receives something of it for each stage is what keeps one of them from
  /// giving the stage back twice before another has once.
  bool skipsZeros() const { return getClusterSize() <= 2; }
  /// Parts of K that a block sums, a consumer each.
  int64_t getBlockParts() const {
    return !isPingPong() && rows == 64 ? consumers : 1;
  }
  /// Consumer warpgroups that share each K block of a tile.
  int64_t getSharers() const {
    return isPingPong() ? 1 : consumers / getBlockParts();
  }
  /// 64-row slices of the tile that one consumer computes.
  int64_t getSubtiles() const { return rows / (64 * getSharers()); }
};

/// Where packed weights, and what lifts them, are in shared memory; offsets as
/// those of MatmulLayout.
struct LiftLayout {
  /// Codes and exponents of a stage, with what aligns the latter, and their
  /// barriers.
  static int64_t getStageBytes(const OperandSpec &operand, int64_t extent,
                               int64_t blocks);
  /// 16 entries of 8 bytes: for each exponent, the E4M3 of each magnitude. Or
  /// 256 of 4: for each factor of a byte, its bf16, twice. Factors in f32 are
  /// what they are.
  static int64_t getTableBytes(Lifting lifting) {
    if (lifting == Lifting::E4M3Blocks)
      return 0;
    return hasByteFactors(lifting) ? 256 * 4 : 16 * 8;
  }

  /// The codes of one tensor: all in a stage, or half of those of a pair.
  OperandTile packed;
  /// K blocks of a stage, and bytes of a row's codes of each.
  int64_t blocks = 1;
  int64_t getBlockRowBytes() const { return packed.getRowBytes() / blocks; }
  Lifting lifting = Lifting::None;
  /// Rows of B in a stage.
  int64_t extent = 0;
  int64_t offsetCodes = 0, offsetExponents = 0, offsetBarriers = 0;
  int64_t offsetTable = 0;
  /// Bytes from one stage to the next; exponents, or factors of bytes, are a
  /// word for each row and K block, those of 128 rows one for each 64.
  int64_t codeStride = 0, exponentStride = 0;
  /// Bytes from those of one K block to those of the next one.
  int64_t getExponentStep() const { return exponentStride / blocks; }
  /// Warps that lift, those that share a stage, and registers of a thread.
  int64_t warps = 0, sharing = 1, registers = 0;

  /// Stages that are lifted at the same time.
  int64_t getTurns() const { return warps ? warps / sharing : 1; }
};

/// Where a matmul kernel keeps what in shared memory. Offsets are in bytes; the
/// ring's operands are 1024-byte aligned, as the 128-byte swizzle repeats after
/// 8 rows of 128 bytes.
struct MatmulLayout {
  MatmulLayout(const MatmulSpec &spec, GemmConfigAttr config);

  /// The operands in a stage of the ring; and what of the columns comes from
  /// one tensor: all, or half of those of a pair.
  OperandTile rows, cols, colsPart;
  /// K blocks of a stage, of which operands have one each after the other; and
  /// elements of its K.
  int64_t stageBlocks;
  int64_t getStageK() const { return stageBlocks * rows.getBlockK(); }
  /// What there is more for weights that are packed.
  std::optional<LiftLayout> lift;
  /// Whether those who multiply lift them, in registers.
  bool liftsInRegisters() const { return lift && lift->warps == 0; }
  /// Factors of a stage; those of columns, of a pair both halves'.
  int64_t rowScales = 0, colScales = 0;
  /// Whether bulk copies bring them, and bytes from one stage to the next.
  bool rowScalesInBulk = false, colScalesInBulk = false;
  int64_t rowScaleStride = 0, colScaleStride = 0;
  /// Whether those of A may begin up to three rows before the tile.
  bool factorsBefore = false;
  int64_t offsetRows, offsetCols, offsetStaging, offsetRowScales,
      offsetColScales, offsetBarriers, offsetGroups;
  /// Those of 32 elements as bf16, of each consumer (kFactorBufferBytes).
  int64_t offsetFactors = 0;
  /// The sums of consumers but the first, where each has a part of K, of all
  /// blocks of a cluster.
  int64_t offsetParts = 0;
  int64_t sharedBytes;
  int64_t threads;
  /// Registers of a producer and of a consumer thread after setmaxnreg.
  int64_t producerRegisters, consumerRegisters;
  /// Extent in bytes along N of one bulk tensor store, 64 rows high; 0 with
  /// direct stores.
  int64_t storeBytes = 0;

  /// Shared memory and registers of the kernel; says why if the config does not
  /// fit the spec on the target.
  static FailureOr<MatmulLayout> get(const MatmulSpec &spec,
                                     GemmConfigAttr config,
                                     GPUTargetAttr target, std::string &reason);

private:
  /// Offsets, from the sizes.
  void place(const MatmulSpec &spec, GemmConfigAttr config);
};

/// Whether bulk copies bring an operand's factors along K. Those of other
/// alignments a warp copies, as those of 128x128 elements, of which there are
/// few.
bool areFactorsInBulk(const MatmulSpec &spec, bool ofA);

/// Into how many bulk copies so many factors of a stage go.
int64_t getFactorBoxes(int64_t factors);

/// Bytes of the factors along K in a stage of the ring.
int64_t getFactorBytes(const MatmulSpec &spec, const TileConfig &config);

/// Bytes in which a consumer has the factors of 32 elements of two stages as
/// bf16: up to 128 of each instruction.
inline constexpr int64_t kFactorBufferBytes = 2 * (kRowBytes / 32) * 128 * 2;

/// Bytes of one consumer's staging buffer: rows of a 128-byte swizzle atom, of
/// which the result has 64 or, where it is transposed, all columns.
inline int64_t getStagingBytes(const TileConfig &config) {
  return (config.swapped ? config.cols : 64) * kRowBytes;
}

/// How the blocks of a cluster, or its consumers alone, leave sums of parts of
/// K for the first one.
inline ClusterSplitK::Shape getPartsOfCluster(const TileConfig &config) {
  return {config.clusterK ? config.splitK : 1, config.getBlockParts(),
          config.consumers * 128, config.getSubtiles() * config.cols / 2};
}

/// Bytes of these sums.
inline int64_t getPartBytes(const TileConfig &config) {
  bool inMemory = config.splitK > 1 && !config.clusterK;
  return inMemory ? 0 : getPartsOfCluster(config).getBytes();
}

/// How many products of such elements are under way at once.
inline int64_t getNumProductSets(int64_t cols) { return cols <= 32 ? 4 : 2; }

/// The widest swizzle for rows of a tile of so many bytes that writes no more
/// than a quarter of the tile twice; 0 if there is none.
int64_t getStoreBytes(int64_t bytes);

/// Fails, with the reason, if no config can compute products of such operands.
LogicalResult checkOperands(const MatmulSpec &spec, std::string &reason);

/// Whether promotion can be overlapped: there are registers for a second set of
/// accumulators.
bool canOverlapPromotion(const MatmulSpec &spec, const TileConfig &config);

} // namespace mlir::fp8::sm90

#endif // FP8_LIB_KERNELS_SM90_MATMULLAYOUT_H
