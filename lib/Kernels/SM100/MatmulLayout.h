//===- MatmulLayout.h - Shared and tensor memory of matmuls -----*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_KERNELS_SM100_MATMULLAYOUT_H
#define FP8_LIB_KERNELS_SM100_MATMULLAYOUT_H

#include "../Blocks/OperandTile.h"
#include "SM100Dialect.h"

namespace mlir::fp8::sm100 {

/// Sets of sums in tensor memory: one is filled while the other is taken. Where
/// each K block has one to itself, as many as have room, up to the most.
inline constexpr int64_t kAccumulators = 2, kMaxAccumulators = 4;

/// Columns of a multiprocessor.
inline constexpr int64_t kMemoryColumns = 512;

/// An atom of factors, four for each of 128 rows, in shared memory and in
/// tensor memory (PTX ISA, "Layout of the Scale Factor").
inline constexpr int64_t kFactorBytes = 512, kFactorColumns = 4;

/// Where a matmul kernel keeps what in shared memory and in tensor memory.
/// Offsets are in bytes; the ring's operands are 1024-byte aligned, as the
/// 128-byte swizzle repeats after 8 rows of 128 bytes.
struct MatmulLayout {
  MatmulLayout(const MatmulSpec &spec, GemmConfigAttr config);

  /// The operands in a stage of the ring; and what of the columns comes from
  /// one tensor: all, or half of those of a pair.
  OperandTile rows, cols, colsPart;
  /// Atoms of factors of rows and of columns in a stage: along them, and along
  /// K. Of each 128 rows those of K come first.
  int64_t rowFactors = 0, colFactors = 0, factorSteps = 0;
  int64_t getRowFactorBytes() const {
    return rowFactors * factorSteps * getFactorStride();
  }
  int64_t getColFactorBytes() const {
    return colFactors * factorSteps * getFactorStride();
  }
  /// From one atom to the next.
  int64_t getFactorStride() const {
    return kFactorBytes + (factorSteps > 1 ? 128 / factorSteps : 0);
  }
  /// Factors in f32, of rows and of columns, that multiply the sums of a K
  /// block when they are promoted: stages of a ring of their own, and bytes
  /// from one to the next. None where the tensor core adds up all of K.
  int64_t rowScales = 0, colScales = 0, scaleStages = 0;
  int64_t rowScaleStride = 0, colScaleStride = 0;
  bool isPromoted() const { return scaleStages != 0; }
  int64_t offsetRows, offsetCols, offsetStaging, offsetRowFactors,
      offsetColFactors, offsetRowScales, offsetColScales, offsetRing,
      offsetAccumulators, offsetScaleRing, offsetMemory, offsetFlag,
      offsetGroups;
  int64_t sharedBytes;
  int64_t threads;
  /// Registers of a thread that finishes tiles and of any other, where they are
  /// not the same; 0 where they are.
  int64_t finisherRegisters = 0, otherRegisters = 0;
  /// Sets of sums, from one to the next columns of tensor memory, and all
  /// columns. Where factors leave no room for two sets, the first one's last
  /// columns are the second one's first ones, too: `sharedColumns`. They are
  /// taken first, and a tile's products wait for that.
  int64_t accumulators = kAccumulators;
  int64_t accumulatorStride, sharedColumns, memoryColumns;
  /// Factors are behind the sums.
  int64_t getFirstFactorColumn() const {
    return accumulators * accumulatorStride + sharedColumns;
  }
  /// In the ring of sets, of which two that share columns are not filled before
  /// the other has begun to be taken: one stage then, and the phase says which.
  int64_t getAccumulatorStages() const {
    return sharedColumns ? 1 : accumulators;
  }
  /// Columns of the result that a thread takes from tensor memory at a time:
  /// all that a bulk store brings, or a part of a tile.
  int64_t chunkCols;
  /// Extent in bytes along N of a bulk tensor store; 0 with direct stores.
  int64_t storeBytes = 0;

  /// Memory of the kernel; says why if the config does not fit the spec on the
  /// target.
  static FailureOr<MatmulLayout> get(const MatmulSpec &spec,
                                     GemmConfigAttr config,
                                     GPUTargetAttr target, std::string &reason);

private:
  /// What promotion takes.
  LogicalResult setPromotion(const MatmulSpec &spec, GemmConfigAttr config,
                             GPUTargetAttr target, std::string &reason);
  /// Offsets, from the sizes.
  void place(const MatmulSpec &spec, GemmConfigAttr config);
};

/// Whether each K block's sums are multiplied by its factors and added up in
/// registers.
bool promotesSums(const MatmulSpec &spec);

/// Sets of sums in tensor memory.
int64_t getNumAccumulators(const MatmulSpec &spec, GemmConfigAttr config);

/// Columns of tensor memory that two sets of sums share.
int64_t getSharedColumns(const MatmulSpec &spec, GemmConfigAttr config);

/// Bytes of promotion's factors in shared memory.
int64_t getScaleBytes(const MatmulSpec &spec, int64_t rows, int64_t cols,
                      bool swapped);

/// Fails, with the reason, if no config can compute products of such operands.
LogicalResult checkOperands(const MatmulSpec &spec, std::string &reason);

} // namespace mlir::fp8::sm100

#endif // FP8_LIB_KERNELS_SM100_MATMULLAYOUT_H
