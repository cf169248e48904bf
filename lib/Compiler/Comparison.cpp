//===- Comparison.cpp - Results of two programs ---------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fp8/Compiler/Comparison.h"

#include "llvm/ADT/STLExtras.h"

#include <cmath>

using namespace mlir;
using namespace mlir::fp8;

/// Infinite where elements cannot be compared.
static double getDifference(double value, double reference) {
  if (value == reference || (std::isnan(value) && std::isnan(reference)))
    return 0;
  double difference = std::fabs(value - reference);
  return std::isnan(difference) ? HUGE_VAL : difference;
}

llvm::Expected<std::vector<Difference>>
fp8::compareResults(ArrayRef<HostTensor> results,
                    ArrayRef<HostTensor> references) {
  std::vector<Difference> differences;
  for (auto [result, reference] : llvm::zip_equal(results, references)) {
    if (result.shape != reference.shape)
      return llvm::createStringError(
          "expected result '" + result.name + "' to be " +
          describe(reference.dtype, reference.shape) + ", but got " +
          describe(result.dtype, result.shape));
    Difference difference;
    difference.name = result.name;
    difference.count = result.getNumElements();
    for (int64_t i = 0; i < difference.count; ++i) {
      double expected = getElement(reference, i);
      double delta = getDifference(getElement(result, i), expected);
      difference.numDifferent += delta != 0;
      difference.largest = std::fmax(difference.largest, delta);
      if (std::isfinite(expected))
        difference.magnitude =
            std::fmax(difference.magnitude, std::fabs(expected));
    }
    differences.push_back(std::move(difference));
  }
  return differences;
}
