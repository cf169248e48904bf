//===- Problem.h - Arguments of a kernel on a GPU ---------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_TUNING_PROBLEM_H
#define FP8_LIB_TUNING_PROBLEM_H

#include "GPU.h"
#include "TunedKernel.h"
#include "fp8/Runtime/Kernel.h"

namespace mlir::fp8 {

/// What the kernels of an operation read and write, several times over, so that
/// together it exceeds the L2 cache: a kernel that finds its operands there is
/// measured too fast.
class Problem {
public:
  using Arguments = SmallVector<fp8rt_kernel_argument>;

  /// Random floats, of both signs and of magnitudes from 1/8 to 4: constants
  /// would cost less power and run at higher clocks.
  static llvm::Expected<std::unique_ptr<Problem>>
  create(const TunedKernel &tuned, GPU &gpu);

  ArrayRef<Arguments> getSets() const { return sets; }
  ArrayRef<const void *> getCaptures() const { return captures; }

  /// Zeros for each of the workspaces that `kernel` needs.
  llvm::Expected<ArrayRef<void *>> getWorkspaces(const fp8rt_kernel *kernel);

private:
  explicit Problem(GPU &gpu) : memory(gpu) {}

  llvm::Error addSet(ArrayRef<RankedTensorType> types,
                     ArrayRef<std::vector<uint8_t>> inputs);

  GPUMemory memory;
  SmallVector<Arguments> sets;
  /// The bits of scalars, which stay where they are.
  std::vector<uint64_t> scalars;
  SmallVector<const void *> captures;
  SmallVector<void *> workspaces;
  SmallVector<uint64_t> workspaceBytes;
};

} // namespace mlir::fp8

#endif // FP8_LIB_TUNING_PROBLEM_H
