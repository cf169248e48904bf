//===- AttentionSpec.h - What an attention kernel computes ------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_KERNELS_ATTENTION_ATTENTIONSPEC_H
#define FP8_LIB_KERNELS_ATTENTION_ATTENTIONSPEC_H

#include "AttentionShape.h"

namespace mlir::fp8 {

/// The forward of `fp8.attention`, whose description has the formulas.
struct AttentionSpec : AttentionShape {
  static constexpr StringLiteral kKind = "attention";

  AttentionSpec() : AttentionShape(kKind) {}
  static bool classof(const KernelSpec *spec) {
    return spec->getKind() == kKind;
  }

  Type output;
  /// What numbers are rounded to before they become codes with one scale, which
  /// is what is stored then; null where numbers are.
  Type rounded;
  /// Whether the largest magnitude of rounded numbers is a result.
  bool hasAmax = false;
  /// Dimensions of that and of the scale, of one element.
  int64_t rankOfScale = 2;
  /// Whether Q, K and V have factors for each head.
  bool hasHeadFactors[3] = {};
  /// How many positions of Q, K and V share one of these, 0 where all do.
  int64_t positionsOfFactor[3] = {};
  bool hasLse = false;
  /// Whether batches have numbers of keys of their own, and first keys, and
  /// heads a score that is no key's.
  bool hasKeyLengths = false, hasKeyStarts = false, hasSinks = false;
  /// The element type of a mask, null without one, and which of its four
  /// dimensions (batches, heads, queries and keys) have one element for all.
  Type mask;
  bool isMaskShared[4] = {};
  /// Keys of a page, 0 where keys of a batch lie one after the other.
  int64_t pageSize = 0;
  float factorOfP;
  /// Whether a query's bits depend on the keys that it sees alone, not on how
  /// many queries and batches there are, nor on where its keys begin.
  bool invariant = false;
  Accumulate accumulate;

  /// Whether some queries see no keys of the first or of the last tiles that
  /// others see.
  bool hidesFirst() const { return left || hasKeyStarts || hasKeyRanges; }
  bool hidesLast() const { return right || hasKeyRanges; }
  /// Whether a mask has numbers, which are added to scores.
  bool hasAddedMask() const { return mask && !mask.isInteger(1); }
  /// Whether a batch's last tile may have anything behind its keys. Bulk copies
  /// fill with zeros what is behind all keys, but pages follow others, which
  /// may have keys before a batch's first.
  bool hasRestBehindKeys() const {
    return hasKeyLengths || (pageSize && hasKeyStarts);
  }
  /// Whether keys, or values, have factors for blocks of their positions.
  bool hasFactorsOfKeys() const { return positionsOfFactor[1] != 0; }
  bool hasFactorsOfValues() const { return positionsOfFactor[2] != 0; }
  /// Whether any of the three has.
  bool hasFactorsOfPositions() const {
    return positionsOfFactor[0] || hasFactorsOfKeys() || hasFactorsOfValues();
  }
  /// Has the result stored as codes.
  void setCodes(Type codes, bool measures, int64_t rank) {
    rankOfScale = rank;
    rounded = output;
    output = codes;
    hasAmax = measures;
  }
  int64_t getElementBytes() const { return q.getIntOrFloatBitWidth() / 8; }
  int64_t getHeadDimension() const { return 3 - getSequenceDim(); }
  /// Heads of Q that a tile of few queries has room for, 64 rows, if all
  /// queries fit into one with them.
  std::optional<int64_t> getHeadsOfFewQueries() const;

  /// "bf16_d128_causal", for names of kernels.
  std::string getLabel() const;
  /// "f8E4M3FN b2 h32/8 4096x4096x128 window[*,0] promote".
  std::string describe() const override;

  /// Keys that share a step of the softmax if that is invariant, whatever else
  /// there is to keep in registers: they divide those of a chunk. With 128 ones
  /// a multiprocessor has no room for two blocks that decode, which takes a
  /// third longer.
  int64_t getInvariantKeys() const {
    return headDimOfV <= 128 ? 96 : headDimOfV <= 192 ? 64 : 32;
  }

  /// Says why if no kernel computes the operation.
  static FailureOr<AttentionSpec> get(AttentionOp op, std::string &reason);
};

} // namespace mlir::fp8

#endif // FP8_LIB_KERNELS_ATTENTION_ATTENTIONSPEC_H
