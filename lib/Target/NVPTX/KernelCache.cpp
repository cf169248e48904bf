//===- KernelCache.cpp - Assembled kernels on disk ------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fp8/Target/NVPTX/KernelCache.h"
#include "fp8/Support/CacheDirectory.h"
#include "fp8/Support/OutputFile.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/CachePruning.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/SHA256.h"

using namespace mlir;
using namespace mlir::fp8;

static constexpr size_t kHashBytes = 32;

static std::string getHash(StringRef bytes) {
  return llvm::toStringRef(
             llvm::SHA256::hash(llvm::arrayRefFromStringRef(bytes)))
      .str();
}

std::optional<KernelCache> KernelCache::open(StringRef option) {
  if (option == "off")
    return std::nullopt;
  if (!option.empty())
    return KernelCache(option.str());
  if (std::optional<std::string> directory = getCacheDirectory("kernels"))
    return KernelCache(std::move(*directory));
  return std::nullopt;
}

llvm::Error KernelCache::check() const {
  return checkCacheDirectory(directory);
}

std::string KernelCache::getKey(StringRef ptx, const PTXOptions &options,
                                StringRef assembler) {
  llvm::SHA256 hash;
  auto add = [&](StringRef text) {
    // With its size, so that no two lists of texts read the same.
    hash.update(std::to_string(text.size()) + ":");
    hash.update(text);
  };
  add(assembler);
  for (const std::string &flag : getPtxasFlags(options))
    add(flag);
  add(ptx);
  return llvm::toHex(hash.final(), /*LowerCase=*/true);
}

/// LLVM's pruning leaves files of other names alone.
std::string KernelCache::getPath(StringRef key) const {
  SmallString<128> path(directory);
  llvm::sys::path::append(path, "llvmcache-" + key);
  return path.str().str();
}

llvm::Expected<std::optional<std::string>>
KernelCache::lookup(StringRef key) const {
  auto file = readCacheEntry(getPath(key));
  if (!file)
    return file.takeError();
  if (!*file)
    return std::nullopt;
  StringRef bytes = (*file)->getBuffer();
  if (bytes.size() < kHashBytes ||
      getHash(bytes.drop_front(kHashBytes)) != bytes.take_front(kHashBytes))
    return std::nullopt;
  return bytes.drop_front(kHashBytes).str();
}

llvm::Error KernelCache::insert(StringRef key, StringRef cubin) const {
  if (llvm::Error error = makeCacheDirectory(directory))
    return error;
  std::string path = getPath(key), bytes = getHash(cubin) + cubin.str();
  return writeOutputFiles(
      {{path, bytes, /*isExecutable=*/false, /*isPrivate=*/true}});
}

void KernelCache::prune() const {
  llvm::CachePruningPolicy policy;
  policy.Expiration = std::chrono::hours(30 * 24);
  policy.MaxSizeBytes = uint64_t(1) << 30;
  llvm::pruneCache(directory, policy);
}
