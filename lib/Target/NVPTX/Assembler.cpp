//===- Assembler.cpp - PTX to machine code, once --------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fp8/Target/NVPTX/Assembler.h"

using namespace mlir;
using namespace mlir::fp8;

Assembler::Assembler(PTXOptions theOptions, StringRef cacheOption)
    : options(std::move(theOptions)), cache(KernelCache::open(cacheOption)) {
  if (cache)
    version = getPtxasVersion(options.ptxas);
  if (version.empty())
    cache.reset();
}

FailureOr<std::string>
Assembler::assemble(StringRef ptx,
                    llvm::function_ref<InFlightDiagnostic()> emitError) {
  std::string key;
  if (cache) {
    key = KernelCache::getKey(ptx, options, version);
    if (std::optional<std::string> known = cache->lookup(key)) {
      ++numCached;
      return std::move(*known);
    }
  }
  std::string log;
  FailureOr<SmallVector<char>> cubin =
      assemblePTX(ptx, options, log, emitError);
  if (failed(cubin))
    return failure();
  ++numAssembled;
  std::string bytes(cubin->begin(), cubin->end());
  if (cache)
    if (llvm::Error error = cache->insert(key, bytes)) {
      std::lock_guard<std::mutex> lock(mutex);
      unkept = llvm::toString(std::move(error));
    }
  return bytes;
}

std::string Assembler::finish() {
  if (cache && numAssembled != 0)
    cache->prune();
  return unkept;
}
