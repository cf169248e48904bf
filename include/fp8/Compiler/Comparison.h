//===- Comparison.h - Results of two programs -------------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_COMPILER_COMPARISON_H
#define FP8_COMPILER_COMPARISON_H

#include "fp8/Compiler/HostTensor.h"

namespace mlir::fp8 {

/// How far a tensor is from its reference.
struct Difference {
  /// The largest difference as a share of the reference's largest magnitude;
  /// infinite where there is a NaN on one side alone.
  double getShare() const { return largest == 0 ? 0 : largest / magnitude; }

  std::string name;
  /// The largest difference of two elements, and the largest finite magnitude
  /// of the reference.
  double largest = 0;
  double magnitude = 0;
  int64_t numDifferent = 0;
  int64_t count = 0;
};

/// Compares each of `results` with its reference. An error if their shapes
/// differ.
llvm::Expected<std::vector<Difference>>
compareResults(ArrayRef<HostTensor> results, ArrayRef<HostTensor> references);

} // namespace mlir::fp8

#endif // FP8_COMPILER_COMPARISON_H
