//===- AttentionShape.h - What both directions have -------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_KERNELS_ATTENTION_ATTENTIONSHAPE_H
#define FP8_LIB_KERNELS_ATTENTION_ATTENTIONSHAPE_H

#include "fp8/IR/FP8Ops.h"
#include "fp8/Kernels/KernelSpec.h"

namespace mlir::fp8 {

/// Bounds scores that kernels bend: their tanh has an error of 2^-20 of the
/// cap.
inline constexpr float kLargestCap = 1 << 14;

/// What kernels of attention and of its gradients are for: types, extents, and
/// which keys a query sees.
struct AttentionShape : KernelSpec {
  using KernelSpec::KernelSpec;

  /// Element types of Q, K and V.
  Type q, k, v;
  AttentionLayout layout;
  /// Extents, kDynamic where unknown.
  int64_t batch, queries, keys;
  int64_t heads, headsOfK, headDim, headDimOfV;
  /// Keys before and after a query's own that it sees.
  std::optional<int64_t> left, right;
  bool bottomRight = false;
  /// Whether Q, K and V have factors.
  bool isScaled = false;
  float scale;
  /// What scores bend towards.
  std::optional<float> cap;
  /// Whether queries have ranges of keys.
  bool hasKeyRanges = false;
  /// Shares of attention whose numbers of 16 bits are less are left out; 0 if
  /// none are.
  int64_t dropThreshold = 0;

  bool isCausal() const { return right && *right == 0 && !left; }
  int64_t getSequenceDim() const {
    return layout == AttentionLayout::BSHD ? 1 : 2;
  }

  bool hasKnownExtents() const override;

protected:
  /// "f8E4M3FN b2 h32/8 4096x4096x128 window[*,0] cap30 dropout0.1".
  void describeShape(llvm::raw_ostream &os) const;
};

} // namespace mlir::fp8

#endif // FP8_LIB_KERNELS_ATTENTION_ATTENTIONSHAPE_H
