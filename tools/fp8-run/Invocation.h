//===- Invocation.h - Calling a compiled program ----------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_TOOLS_FP8RUN_INVOCATION_H
#define FP8_TOOLS_FP8RUN_INVOCATION_H

#include "HostTensor.h"
#include "fp8/Target/CPU/Engine.h"

namespace mlir::fp8 {

/// Calls of one function with the same arguments.
class Invocation {
public:
  Invocation(const Signature &signature, ArrayRef<HostTensor> arguments,
             CPUEngine::Function function)
      : signature(signature), arguments(arguments), function(function) {}

  /// Calls the function with copies of the arguments, which it may overwrite.
  /// `seconds`, if given, is the time of the call alone.
  llvm::Expected<std::vector<HostTensor>> run(double *seconds = nullptr);

private:
  llvm::Error prepare();
  llvm::Expected<std::vector<HostTensor>> takeOutputs();
  llvm::Expected<HostTensor> takeMemRef(const Port &port, const char *bytes,
                                        SmallVectorImpl<void *> &allocated);

  const Signature &signature;
  ArrayRef<HostTensor> arguments;
  CPUEngine::Function function;

  /// Per argument: the copy of its data and, for a memref, the descriptor.
  std::vector<Buffer> copies;
  std::vector<SmallVector<int64_t>> descriptors;
  /// The results, as the function's struct of results or its scalar.
  Buffer results;
};

} // namespace mlir::fp8

#endif // FP8_TOOLS_FP8RUN_INVOCATION_H
