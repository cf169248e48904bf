//===- AttentionBackwardSpec.h - Gradients of attention ---------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_KERNELS_ATTENTION_ATTENTIONBACKWARDSPEC_H
#define FP8_LIB_KERNELS_ATTENTION_ATTENTIONBACKWARDSPEC_H

#include "AttentionShape.h"
#include "fp8/IR/FP8AttentionBackwardOp.h"

namespace mlir::fp8 {

/// `fp8.attention_backward`, whose description has the formulas.
struct AttentionBackwardSpec : AttentionShape {
  static constexpr StringLiteral kKind = "attention_backward";

  AttentionBackwardSpec() : AttentionShape(kKind) {}
  static bool classof(const KernelSpec *spec) {
    return spec->getKind() == kKind;
  }

  /// Element type of all gradients.
  Type grad;
  /// Whether tiles of keys are added to dQ in their order.
  bool isDeterministic;

  /// "f8E4M3FN b2 h32/8 4096x4096x128 window[*,0] grad bf16", and " any order"
  /// if sums have none.
  std::string describe() const override;
  /// "bf16_d128_causal", for names of kernels.
  std::string getLabel() const;

  /// Says why if no kernel computes the operation.
  static FailureOr<AttentionBackwardSpec> get(AttentionBackwardOp op,
                                              std::string &reason);
};

} // namespace mlir::fp8

#endif // FP8_LIB_KERNELS_ATTENTION_ATTENTIONBACKWARDSPEC_H
