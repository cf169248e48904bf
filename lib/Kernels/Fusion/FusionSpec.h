//===- FusionSpec.h - What a streaming kernel computes ----------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_KERNELS_FUSION_FUSIONSPEC_H
#define FP8_LIB_KERNELS_FUSION_FUSIONSPEC_H

#include "fp8/Analysis/FusionLayouts.h"
#include "fp8/IR/PackedCodes.h"
#include "fp8/Kernels/KernelSpec.h"

namespace mlir::fp8 {

/// What stands for one element of a tensor, of the domain as batches of rows
/// and columns: 1, a number of, or all (ScaledType::kWhole) of each.
struct FusionBlock {
  int64_t batches, rows, columns;

  bool isFull() const { return batches == 1 && rows == 1 && columns == 1; }
  bool isSingle() const;
};

/// The body of a fp8.fusion on a domain of rows and columns.
struct FusionSpec : KernelSpec {
  static constexpr StringLiteral kKind = "fusion";

  explicit FusionSpec(ArrayRef<int64_t> domain)
      : KernelSpec(kKind), layouts(domain) {}
  static bool classof(const KernelSpec *spec) {
    return spec->getKind() == kKind;
  }

  /// Says why if no kernel computes the fusion.
  static FailureOr<FusionSpec> get(FusionOp op, std::string &reason);

  FusionOp op;
  FusionLayouts layouts;
  /// Extents of the domain, kDynamic where unknown. Rows of all batches count
  /// as one batch's where nothing tells them apart.
  int64_t batch = 1, rows = 1, columns = 1;
  bool isBatched = false;
  /// What needs a tile: a result in another order, the widest blocks of rows
  /// and of columns that something is measured of, and whether whole rows are.
  bool transposes = false, reducesRows = false;
  int64_t blockRows = 1, blockColumns = 1;
  /// Rows of the lowest block, measured or read; more than a thread may have.
  int64_t leastRows = 32;
  /// Rows of the tile that has whole columns, if something is measured of
  /// these, a power of two; 1 otherwise.
  int64_t heldRows = 1;
  /// Tensors whose elements wait for scales of blocks of several rows.
  int64_t heldTensors = 0;
  /// Whether 16 rows, or 16 columns, are rotated together.
  bool rotatesRows = false, rotatesColumns = false;
  /// Whether numbers are drawn for codes, and for four rows at once.
  bool draws = false, drawsRows = false;
  /// Whether something that it needs was measured just before of a tensor that
  /// it reads again.
  bool rereads = false;
  /// Whether rows are added up, and bits of a row may depend on nothing else.
  bool hasInvariantSums = false;
  /// Results of the body that are stored, and tensors that are read, each with
  /// the layout that it is read by: inputs of the op by number.
  struct Input {
    BlockArgument argument;
    FusionLayout layout;
    /// Whether rows of it are read by an index.
    bool isGathered = false;
  };
  SmallVector<Input> inputs;
  SmallVector<BlockArgument> captures;

  FusionBlock getBlock(const FusionLayout &layout) const;
  /// Whether the last dimension is the domain's rows, and not its columns.
  bool isTransposed(const FusionLayout &layout) const;
  Block &getBody() const { return FusionOp(op).getBody().front(); }
  /// The number of an input, and its dimension, that has as many elements as
  /// dimension `dim` of the domain; none if no input is known to.
  std::optional<std::pair<unsigned, int64_t>> findExtent(int64_t dim) const;
  /// The layout of result `number`.
  const FusionLayout &getResultLayout(unsigned number) const;

  bool hasKnownExtents() const override;
  /// "8192x4096 read bf16 write f8E4M3FN f8E4M3FN^T".
  std::string describe() const override;
  /// Bytes of the domain's elements that are read and written.
  double getBytes() const;

private:
  FusionBlock getBlockOf(ArrayRef<int64_t> block) const;
};

} // namespace mlir::fp8

#endif // FP8_LIB_KERNELS_FUSION_FUSIONSPEC_H
