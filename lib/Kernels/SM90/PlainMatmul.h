//===- PlainMatmul.h - Configs of matmuls in high precision -----*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_KERNELS_SM90_PLAINMATMUL_H
#define FP8_LIB_KERNELS_SM90_PLAINMATMUL_H

#include "MatmulGenerator.h"

namespace mlir::fp8 {

/// A config without what follows from the rest of it; "rows" and "cols" as
/// MatmulContext has them.
struct PlainConfig {
  int64_t rows, cols;
  GemmSchedule schedule;
  int64_t consumers;
  bool swapped;
  int64_t cluster, clusterCols, splitK, stages, staging;

  bool isPingPong() const { return schedule == GemmSchedule::PingPong; }
  int64_t getClusterSize() const { return cluster * clusterCols; }
  int64_t getWaves() const {
    return rows / (64 * (isPingPong() ? 1 : consumers));
  }
};

/// What of a matmul its configs and their cost depend on.
class PlainMatmul {
public:
  PlainMatmul(const MatmulSpec &spec, GPUTargetAttr target);

  /// All that may be worth a thought.
  SmallVector<PlainConfig> getConfigs() const;
  /// An estimate of the clocks.
  double getCost(const PlainConfig &config) const;
  GemmConfigAttr getAttr(const PlainConfig &config) const;

private:
  /// The rows or the columns of a result and the operand they come from.
  struct Side;

  static int64_t countTiles(ArrayRef<int64_t> extents, int64_t width);
  void addConfigs(bool swapped, SmallVectorImpl<PlainConfig> &configs) const;
  /// Takes as many stages as there is room for; false if that is too few.
  bool setStages(PlainConfig &config) const;
  Side getSide(const PlainConfig &config, bool ofRows) const;
  double getBlockClocks(const PlainConfig &config, double activeBlocks) const;
  double getStoreClocks(const PlainConfig &config) const;

  const OperandSpec &getRows(bool swapped) const {
    return swapped ? spec.b : spec.a;
  }
  const OperandSpec &getCols(bool swapped) const {
    return swapped ? spec.a : spec.b;
  }

  const MatmulSpec &spec;
  GPUTargetAttr target;
  /// Of each result; the sums of these.
  SmallVector<int64_t> ms, ns;
  int64_t m, n, k, batch, kBlocks, resultBytes;
  bool storesInBulk;
};

} // namespace mlir::fp8

#endif // FP8_LIB_KERNELS_SM90_PLAINMATMUL_H
