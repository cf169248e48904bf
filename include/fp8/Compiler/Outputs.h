//===- Outputs.h - The results of all steps ---------------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_COMPILER_OUTPUTS_H
#define FP8_COMPILER_OUTPUTS_H

#include "fp8/Compiler/HostTensor.h"

namespace mlir::fp8 {

/// The results of a program, of all steps in one tensor each.
class Outputs {
public:
  /// Given a number of steps, that is one more dimension in front.
  explicit Outputs(std::optional<int64_t> steps) : steps(steps) {}

  /// Where to write the `index`th result of `step`, dense and row-major. Called
  /// for each result in order, and for step 0 first, whose extents all others
  /// must have.
  llvm::Expected<char *> place(size_t index, const ValueInfo &info,
                               int64_t step, ArrayRef<int64_t> shape);

  ArrayRef<HostTensor> getTensors() const { return tensors; }

private:
  std::optional<int64_t> steps;
  std::vector<HostTensor> tensors;
};

} // namespace mlir::fp8

#endif // FP8_COMPILER_OUTPUTS_H
