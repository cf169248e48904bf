//===- FusionTiling.h - How fusions are cut into tiles ----------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_TRANSFORMS_LOOPFUSION_FUSIONTILING_H
#define FP8_LIB_TRANSFORMS_LOOPFUSION_FUSIONTILING_H

#include "fp8/Analysis/FusionLayouts.h"

namespace mlir::fp8 {

/// A cut of a fusion's domain into tiles, each of which can be computed without
/// the others: whole blocks, whole rows or columns where these are summed. What
/// is computed of a tile's inputs is the same, bit by bit, as of the tensors'.
class FusionTiling {
public:
  /// Tiles of about so many elements. Says why if nothing can be cut, or
  /// nothing would be gained.
  static FailureOr<FusionTiling> get(FusionOp fusion, int64_t elements,
                                     std::string &reason);

  const FusionLayouts &getLayouts() const { return layouts; }
  /// For each dimension of the domain the extent of a tile, or
  /// ScaledType::kWhole.
  ArrayRef<int64_t> getTile() const { return tile; }
  /// An argument of the body with an element for each of the domain, and for
  /// each dimension of that its own, beside which it may have some of extent 1.
  BlockArgument getDomainInput() const { return domainInput; }
  ArrayRef<int64_t> getDomainDims() const { return domainDims; }
  /// Whether an operation of the body depends on no tile.
  bool isHoisted(Operation *op) const { return hoisted.contains(op); }
  /// The operands of an operation of the body that are arguments which it reads
  /// the elements of.
  static SmallVector<OpOperand *> getInputs(Operation &op);
  /// For each dimension of a result the one of the domain along which every
  /// tile has an amax of its own; -1 where there is nothing to combine.
  SmallVector<int64_t> getPartialDims(Value yielded) const;

private:
  FusionTiling(FusionOp fusion, ArrayRef<int64_t> domain)
      : fusion(fusion), layouts(domain) {}

  LogicalResult analyze(std::string &reason);
  LogicalResult choose(int64_t elements, std::string &reason);
  void findHoisted();
  void findWhole();
  /// What the blocks of a dimension have as a common multiple.
  int64_t getAlignment(unsigned dim);

  FusionOp fusion;
  FusionLayouts layouts;
  SmallVector<int64_t> tile;
  /// Dimensions that are not cut.
  SmallVector<bool> isWhole;
  bool isTransposed = false;
  BlockArgument domainInput;
  SmallVector<int64_t> domainDims;
  llvm::SmallPtrSet<Operation *, 4> hoisted;
};

} // namespace mlir::fp8

#endif // FP8_LIB_TRANSFORMS_LOOPFUSION_FUSIONTILING_H
