//===- Comparison.cpp - Results of two targets ------------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Comparison.h"

#include "Report.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Format.h"

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

llvm::Error mlir::fp8::compareResults(ArrayRef<HostTensor> results,
                                      ArrayRef<HostTensor> references,
                                      double tolerance, llvm::raw_ostream &os) {
  std::string beyond;
  for (auto [result, reference] : llvm::zip_equal(results, references)) {
    if (result.shape != reference.shape)
      return llvm::createStringError(
          "expected result '" + result.name + "' to be " +
          describe(reference.dtype, reference.shape) + ", but got " +
          describe(result.dtype, result.shape));
    double largest = 0, difference = 0;
    int64_t numDifferent = 0, count = result.getNumElements();
    for (int64_t i = 0; i < count; ++i) {
      double expected = getElement(reference, i);
      double delta = getDifference(getElement(result, i), expected);
      numDifferent += delta != 0;
      difference = std::fmax(difference, delta);
      if (std::isfinite(expected))
        largest = std::fmax(largest, std::fabs(expected));
    }
    double share = difference == 0 ? 0 : difference / largest;
    os << result.name
       << llvm::format(": largest difference %.3g of %.6g (%.3g), %lld of %lld "
                       "elements differ\n",
                       difference, largest, share,
                       static_cast<long long>(numDifferent),
                       static_cast<long long>(count));
    if (!(share <= tolerance))
      beyond += (beyond.empty() ? "'" : ", '") + result.name + "'";
  }
  if (beyond.empty())
    return llvm::Error::success();
  return llvm::createStringError(
      llvm::Twine("expected results within ") + std::to_string(tolerance) +
      " of those of the CPU, but not so for " + beyond);
}
