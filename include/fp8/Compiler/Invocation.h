//===- Invocation.h - Calls with tensors of the host ------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_COMPILER_INVOCATION_H
#define FP8_COMPILER_INVOCATION_H

#include "fp8/Compiler/Device.h"
#include "fp8/Compiler/HostTensor.h"
#include "fp8/Compiler/Outputs.h"
#include "fp8/Compiler/Program.h"

namespace mlir::fp8 {

/// Calls of one function with the same arguments, or slices of them, wherever
/// it runs.
class Invocation {
public:
  /// `device` is where the program runs; null for the CPU. All that is passed
  /// outlives this.
  Invocation(Program &program, const fp8rt_program_function &function,
             const Signature &signature, ArrayRef<HostTensor> arguments,
             fp8rt_state state, Device *device)
      : program(program), function(function), signature(signature),
        arguments(arguments), state(state), device(device) {}
  ~Invocation() { freeArguments(); }

  /// Calls the function with copies of what the arguments hold for `step`,
  /// which it may overwrite, and writes the results to `outputs`. Returns the
  /// seconds of the call alone.
  llvm::Expected<double> run(int64_t step, Outputs &outputs);

private:
  /// A descriptor in words: what a fp8rt_tensor of any rank is.
  using Descriptor = SmallVector<int64_t>;

  llvm::Error prepare(int64_t step);
  /// The memory of an argument: the copy, or on a GPU the device's.
  llvm::Expected<void *> getArgumentData(const ValueInfo &info, void *copy,
                                         size_t size);
  void freeArguments();
  llvm::Error takeOutputs(int64_t step, Outputs &outputs);
  /// Copies what a descriptor describes to dense memory of the host.
  llvm::Error takeTensor(ArrayRef<int64_t> words, size_t width,
                         char *destination);

  Program &program;
  const fp8rt_program_function &function;
  const Signature &signature;
  ArrayRef<HostTensor> arguments;
  fp8rt_state state;
  Device *device;

  /// Per argument: the copy of its data and, for a tensor, the descriptor.
  std::vector<Buffer> copies;
  std::vector<void *> onDevice;
  std::vector<Descriptor> descriptors;
  /// Per result: the descriptor, or a word that holds the scalar.
  std::vector<Descriptor> results;
};

} // namespace mlir::fp8

#endif // FP8_COMPILER_INVOCATION_H
