//===- MatmulSignature.h - What matmul kernels take -------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_KERNELS_MATMUL_MATMULSIGNATURE_H
#define FP8_LIB_KERNELS_MATMUL_MATMULSIGNATURE_H

#include "../Blocks/KernelSignature.h"
#include "../Blocks/OperandTile.h"

namespace mlir::fp8 {

/// What the parameters and the launch of a matmul kernel depend on beside its
/// spec, whatever the architecture.
struct MatmulForm {
  /// As bulk copies bring A and B; of a pair's B what comes from one tensor.
  OperandTile a, b;
  /// Extent in bytes along N, and rows, of a bulk tensor store; 0 bytes where
  /// each element is stored by itself.
  int64_t storeBytes, storeRows;
  /// What a cluster computes at a time, in the tensor core's rows and columns.
  int64_t clusterM, clusterN;
  /// Parts of K, and the sums that a block has of each.
  int64_t splitK, sums;
  int64_t clusterSize, threads, sharedBytes;
  /// Rows of A's and of B's factors that a bulk copy brings; 0 without.
  int64_t factorsOfA = 0, factorsOfB = 0;
  /// Whether rows of A and of B that are out of bounds are copied as zeros only
  /// once for each stage of the ring.
  bool skipsZeros = false;
  /// Rows of B whose exponents a bulk copy brings; 0 unless it is lifted.
  int64_t exponents = 0;
  /// Whether threads copy A and B, with addresses of their own; and store two
  /// neighbours of a row at once, where nothing is stored in bulk.
  bool readsByThreads = false, storesInPairs = false;
  /// Blocks that a multiprocessor runs at a time.
  int64_t resident = 1;
  /// Whether it may begin before the kernel before it has ended, and waits.
  bool overlaps = true;
};

/// The kernel's parameters, by the names in docs/Kernels.md, and its launch.
struct MatmulSignature {
  MatmulSignature(MLIRContext *context, const MatmulSpec &spec,
                  const MatmulForm &form);

  KernelSignature signature;
  KernelSignature::Launch launch;
};

} // namespace mlir::fp8

#endif // FP8_LIB_KERNELS_MATMUL_MATMULSIGNATURE_H
