//===- Assembler.cpp - PTX to machine code, once --------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fp8/Target/NVPTX/Assembler.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace mlir::fp8;

Assembler::Assembler(PTXOptions theOptions, StringRef cacheOption)
    : options(std::move(theOptions)), cache(KernelCache::open(cacheOption)) {
  if (cache)
    version = getPtxasVersion(options.ptxas);
  if (version.empty())
    cache.reset();
  if (cache)
    if (llvm::Error error = cache->check()) {
      refuse(std::move(error));
      cache.reset();
    }
}

void Assembler::refuse(llvm::Error error) {
  std::string reason = llvm::toString(std::move(error));
  // Once in a process, which may compile many programs.
  static std::mutex sharedMutex;
  static llvm::StringSet<> said;
  std::lock_guard<std::mutex> sharedLock(sharedMutex);
  if (!said.insert(reason).second)
    return;
  std::lock_guard<std::mutex> lock(mutex);
  refusal = std::move(reason);
}

FailureOr<std::string>
Assembler::assemble(StringRef ptx,
                    llvm::function_ref<InFlightDiagnostic()> emitError) {
  std::string key;
  bool isTrusted = true;
  if (cache) {
    key = KernelCache::getKey(ptx, options, version);
    llvm::Expected<std::optional<std::string>> known = cache->lookup(key);
    isTrusted = static_cast<bool>(known);
    if (!isTrusted) {
      refuse(known.takeError());
    } else if (*known) {
      ++numCached;
      return std::move(**known);
    }
  }
  std::string log;
  FailureOr<SmallVector<char>> cubin =
      assemblePTX(ptx, options, log, emitError);
  if (failed(cubin))
    return failure();
  ++numAssembled;
  std::string bytes(cubin->begin(), cubin->end());
  if (cache && isTrusted)
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
