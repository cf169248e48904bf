//===- SoftmaxGradient.h - From powers to gradients of scores ---*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_KERNELS_ATTENTION_SOFTMAXGRADIENT_H
#define FP8_LIB_KERNELS_ATTENTION_SOFTMAXGRADIENT_H

#include "AttentionBackwardSpec.h"
#include "AttentionDropout.h"
#include "AttentionScores.h"

namespace mlir::fp8 {

/// What those have in common who multiply, and keep scores in fragments between
/// products: factors of scores, and the softmax's gradient.
class SoftmaxGradient {
protected:
  SoftmaxGradient(KernelBuilder &b, const AttentionBackwardSpec &spec)
      : b(b), spec(spec) {}
  /// Has to be called before all else; `params` are the kernel's.
  void loadFactors(const llvm::StringMap<Value> &params);
  /// The gradient of a score, without a cap's slope: `power` has a sign if it
  /// is left out, `product` is of a gradient and V, and `delta` negative.
  Value differentiate(Value power, Value product, Value delta) const;
  /// Those of a fragment, with slopes if there is a cap, as words.
  SmallVector<Value> packGrads(MutableArrayRef<Value> grads,
                               ArrayRef<Value> slopes) const;

  KernelBuilder &b;
  const AttentionBackwardSpec &spec;
  /// What scores are multiplied by to be exponents of 2, and products with V
  /// by, null for 1.
  Value exponentFactor, factorOfV;
  std::optional<Cap> cap;
  std::optional<AttentionDropout> dropout;
};

} // namespace mlir::fp8

#endif // FP8_LIB_KERNELS_ATTENTION_SOFTMAXGRADIENT_H
