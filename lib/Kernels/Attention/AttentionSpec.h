//===- AttentionSpec.h - What an attention kernel computes ------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_KERNELS_ATTENTION_ATTENTIONSPEC_H
#define FP8_LIB_KERNELS_ATTENTION_ATTENTIONSPEC_H

#include "fp8/IR/FP8Ops.h"
#include "fp8/Kernels/KernelSpec.h"

namespace mlir::fp8 {

/// The forward of `fp8.attention`, whose description has the formulas.
struct AttentionSpec : KernelSpec {
  static constexpr StringLiteral kKind = "attention";

  AttentionSpec() : KernelSpec(kKind) {}
  static bool classof(const KernelSpec *spec) {
    return spec->getKind() == kKind;
  }

  /// Element types of the operands, of Q, K and V, and of the result.
  Type q, k, v, output;
  AttentionLayout layout;
  /// Extents, kDynamic where unknown.
  int64_t batch, queries, keys;
  int64_t heads, headsOfK, headDim, headDimOfV;
  /// Keys before and after a query's own that it sees.
  std::optional<int64_t> left, right;
  bool bottomRight = false;
  /// Whether the operands have factors, and of Q, K and V whether these are of
  /// each head.
  bool isScaled = false;
  bool hasHeadFactors[3] = {};
  bool hasLse = false;
  /// Whether batches have numbers of keys of their own, and first keys, queries
  /// ranges of keys, and heads a score that is no key's.
  bool hasKeyLengths = false, hasKeyStarts = false, hasKeyRanges = false;
  bool hasSinks = false;
  /// Keys of a page, 0 where keys of a batch lie one after the other.
  int64_t pageSize = 0;
  float scale, factorOfP;
  Accumulate accumulate;

  /// Whether some queries see no keys of the first or of the last tiles that
  /// others see.
  bool hidesFirst() const { return left || hasKeyStarts || hasKeyRanges; }
  bool hidesLast() const { return right || hasKeyRanges; }
  /// Whether a batch's last tile may have anything behind its keys. Bulk copies
  /// fill with zeros what is behind all keys, but pages follow others, which
  /// may have keys before a batch's first.
  bool hasRestBehindKeys() const {
    return hasKeyLengths || (pageSize && hasKeyStarts);
  }
  bool isCausal() const { return right && *right == 0 && !left; }
  int64_t getElementBytes() const { return q.getIntOrFloatBitWidth() / 8; }
  int64_t getSequenceDim() const {
    return layout == AttentionLayout::BSHD ? 1 : 2;
  }
  int64_t getHeadDimension() const { return 3 - getSequenceDim(); }

  bool hasKnownExtents() const override;
  /// "f8E4M3FN b2 h32/8 4096x4096x128 window[*,0] promote".
  std::string describe() const override;

  /// Says why if no kernel computes the operation.
  static FailureOr<AttentionSpec> get(AttentionOp op, std::string &reason);
};

} // namespace mlir::fp8

#endif // FP8_LIB_KERNELS_ATTENTION_ATTENTIONSPEC_H
