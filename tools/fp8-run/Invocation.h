//===- Invocation.h - Calling a compiled program ----------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_TOOLS_FP8RUN_INVOCATION_H
#define FP8_TOOLS_FP8RUN_INVOCATION_H

#include "Device.h"
#include "HostTensor.h"
#include "Outputs.h"
#include "fp8/Runtime/ScalingState.h"

#include <functional>

namespace mlir::fp8 {

/// Calls of one function with the same arguments, or slices of them.
class Invocation {
public:
  /// Calls the function with pointers to its arguments, as Engine.h has them.
  using Function = std::function<llvm::Error(void **arguments)>;

  Invocation(const Signature &signature, ArrayRef<HostTensor> arguments,
             Function function, fp8rt_state_rows *state, Device *device)
      : signature(signature), arguments(arguments),
        function(std::move(function)), state(state), device(device) {}
  ~Invocation() { freeArguments(); }

  /// Calls the function with copies of what the arguments hold for `step`,
  /// which it may overwrite, and writes the results to `outputs`. Returns the
  /// seconds of the call alone.
  llvm::Expected<double> run(int64_t step, Outputs &outputs);

private:
  llvm::Error prepare(int64_t step);
  /// Of an argument: the copy, or on a GPU the device's.
  llvm::Expected<void *> getArgumentData(const Port &port, void *copy,
                                         size_t size);
  void freeArguments();
  llvm::Error takeOutputs(int64_t step, Outputs &outputs);
  /// Copies what a descriptor in words describes to dense memory of the host.
  llvm::Error takeMemRef(ArrayRef<int64_t> words, size_t width,
                         char *destination);
  bool isArgument(void *memory) const;

  const Signature &signature;
  ArrayRef<HostTensor> arguments;
  Function function;
  /// Null for a program without state.
  fp8rt_state_rows *state;
  /// Null for a program on the CPU.
  Device *device;

  /// Per argument: the copy of its data and, for a memref, the descriptor.
  std::vector<Buffer> copies;
  std::vector<void *> onDevice;
  std::vector<SmallVector<int64_t>> descriptors;
  /// The results, as the function's struct of results or its scalar.
  Buffer results;
};

} // namespace mlir::fp8

#endif // FP8_TOOLS_FP8RUN_INVOCATION_H
