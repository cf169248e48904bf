//===- MatmulLayout.h - Where a matmul kernel keeps what --------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_KERNELS_MMA_MATMULLAYOUT_H
#define FP8_LIB_KERNELS_MMA_MATMULLAYOUT_H

#include "../Blocks/OperandTile.h"
#include "MmaDialect.h"
#include "fp8/Kernels/Matmul/MatmulSpec.h"

namespace mlir::fp8::mma {

/// Whether sums of 8-bit types keep 25 bits, or are those of f16, and do not
/// have 13: nothing is gained by adding them up in f32.
constexpr bool hasWideSums(int64_t computeCapability) {
  return computeCapability >= 120 || computeCapability < 89;
}

/// Whether tensor cores multiply factors of a byte.
constexpr bool multipliesFactors(int64_t computeCapability) {
  return computeCapability >= 120;
}

/// Whether each K block's sums are added to others in f32, times factors or
/// because the tensor core's have few bits.
bool promotesSums(const MatmulSpec &spec, bool hasWideSums);

/// Whether rows of K, of which it is known how long they are, are multiples of
/// 16 bytes, so that none of a copy's is another's.
bool hasWholeChunks(const MatmulSpec &spec);

/// Fails, with the reason, if no config multiplies such operands.
LogicalResult checkOperands(const MatmulSpec &spec, GPUTargetAttr target,
                            std::string &reason);

/// How the warps of a block share a tile's rows and columns.
struct WarpGrid {
  int64_t ofRows, ofCols;

  /// The one whose warps read the least of shared memory, with registers for
  /// what promoted sums need.
  static WarpGrid get(const MatmulSpec &spec, GemmConfigAttr config,
                      bool promotes);
};

/// Bytes of factors in a stage that a tile of this config has, of which the
/// stages count for nothing.
int64_t getFactorBytes(const MatmulSpec &spec, GemmConfigAttr config);

/// Shared memory of a block, and how many of them a multiprocessor has room
/// for.
class MatmulLayout {
public:
  static FailureOr<MatmulLayout> get(const MatmulSpec &spec,
                                     GemmConfigAttr config,
                                     GPUTargetAttr target, std::string &reason);

  /// The instruction's rows and columns of a stage, and of these what comes
  /// from one tensor.
  OperandTile rows, cols, colsPart;
  int64_t offsetRows = 0, offsetCols, offsetRowFactors, offsetColFactors;
  int64_t offsetRowScales, offsetColScales;
  int64_t offsetFlag, offsetGroups, sharedBytes;
  /// Words of four factors of a row in a K block, 0 without such, and how many
  /// factors of a row an instruction takes.
  int64_t factorWords = 0, factorsOfStep = 0;
  /// Factors in f32 of a K block's rows and columns, 0 where they do not change
  /// along K.
  int64_t rowScales = 0, colScales = 0;
  int64_t resident;
  /// Who has what of a tile: parts of 16 rows, each so many rows behind the one
  /// before, and a warp's columns of them; of a pair of products both.
  WarpGrid warps;
  int64_t subtiles, subtileStride, warpCols;

  /// A thread's sums of a subtile.
  int64_t getRegisters() const { return warpCols / 2; }

  /// Factors of a stage.
  int64_t getRowFactorBytes() const {
    return 4 * factorWords * (rows.getBytes() / kRowBytes);
  }
  int64_t getColFactorBytes() const {
    return 4 * factorWords * (cols.getBytes() / kRowBytes);
  }
  /// From one stage's f32 to the next's: four are copied at once.
  int64_t getScaleStride(bool ofRows) const {
    return llvm::alignTo(4 * (ofRows ? rowScales : colScales), 16);
  }

private:
  MatmulLayout(const MatmulSpec &spec, GemmConfigAttr config, bool promotes);
};

} // namespace mlir::fp8::mma

#endif // FP8_LIB_KERNELS_MMA_MATMULLAYOUT_H
