//===- Assembler.h - PTX to machine code, once ------------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_TARGET_NVPTX_ASSEMBLER_H
#define FP8_TARGET_NVPTX_ASSEMBLER_H

#include "fp8/Target/NVPTX/KernelCache.h"
#include <atomic>
#include <mutex>

namespace mlir::fp8 {

/// ptxas, for the time of a compilation, and what it made in earlier ones.
/// Threads share one.
class Assembler {
public:
  /// For a ptxas that `options` name; `cache` is a value of the option
  /// `kernel-cache`. A ptxas that does not say what it is has no cache, for it
  /// may be another the next time.
  Assembler(PTXOptions options, StringRef cache);

  /// A cubin.
  FailureOr<std::string>
  assemble(StringRef ptx, llvm::function_ref<InFlightDiagnostic()> emitError);

  unsigned getNumAssembled() const { return numAssembled; }
  unsigned getNumCached() const { return numCached; }

  /// Makes room in the cache for what was assembled, if that is due, and says
  /// why something could not be kept; empty if all was.
  std::string finish();

  /// Why the cache or an entry of it was not used, as somebody else may have
  /// written it: the first time in this process. Empty else.
  const std::string &getRefusal() const { return refusal; }

private:
  void refuse(llvm::Error error);

  PTXOptions options;
  std::string version;
  std::optional<KernelCache> cache;
  std::atomic<unsigned> numAssembled = 0, numCached = 0;
  std::mutex mutex; /* for what follows */
  std::string unkept, refusal;
};

} // namespace mlir::fp8

#endif // FP8_TARGET_NVPTX_ASSEMBLER_H
