//===- AttentionBackwardSpec.h - Gradients of attention ---------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_KERNELS_ATTENTION_ATTENTIONBACKWARDSPEC_H
#define FP8_LIB_KERNELS_ATTENTION_ATTENTIONBACKWARDSPEC_H

#include "fp8/IR/FP8AttentionBackwardOp.h"
#include "fp8/Kernels/KernelSpec.h"

namespace mlir::fp8 {

/// `fp8.attention_backward`, whose description has the formulas.
struct AttentionBackwardSpec : KernelSpec {
  static constexpr StringLiteral kKind = "attention_backward";

  AttentionBackwardSpec() : KernelSpec(kKind) {}
  static bool classof(const KernelSpec *spec) {
    return spec->getKind() == kKind;
  }

  /// Element types of Q, K and V, and of all gradients.
  Type q, k, v, grad;
  AttentionLayout layout;
  /// Extents, kDynamic where unknown.
  int64_t batch, queries, keys;
  int64_t heads, headsOfK, headDim, headDimOfV;
  /// Keys before and after a query's own that it sees.
  std::optional<int64_t> left, right;
  bool bottomRight = false;
  /// Whether Q, K and V have factors, one each.
  bool isScaled = false;
  float scale;

  bool isCausal() const { return right && *right == 0 && !left; }
  int64_t getSequenceDim() const {
    return layout == AttentionLayout::BSHD ? 1 : 2;
  }

  bool hasKnownExtents() const override;
  /// "f8E4M3FN b2 h32/8 4096x4096x128 window[*,0] grad bf16".
  std::string describe() const override;

  /// Says why if no kernel computes the operation.
  static FailureOr<AttentionBackwardSpec> get(AttentionBackwardOp op,
                                              std::string &reason);
};

} // namespace mlir::fp8

#endif // FP8_LIB_KERNELS_ATTENTION_ATTENTIONBACKWARDSPEC_H
