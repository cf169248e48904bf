//===- KernelCache.h - Assembled kernels on disk ----------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A file for each cubin, named by the hash of all that ptxas makes it from.
// Files are replaced whole and carry the hash of their contents, so that any
// number of threads and processes may share a directory, and what a crash or a
// full disk left of one is not taken for a kernel.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_TARGET_NVPTX_KERNELCACHE_H
#define FP8_TARGET_NVPTX_KERNELCACHE_H

#include "fp8/Target/NVPTX/PTX.h"
#include "llvm/Support/Error.h"
#include <optional>

namespace mlir::fp8 {

class KernelCache {
public:
  /// A value of the option `kernel-cache`: a directory, which is made when
  /// something is put there; "off"; or, empty, fp8/kernels in XDG_CACHE_HOME or
  /// in ~/.cache. None if it is off, or if there is no such directory.
  static std::optional<KernelCache> open(StringRef option);

  /// A key for what ptxas makes of `ptx` with `options`, if it calls itself
  /// `assembler` (getPtxasVersion).
  static std::string getKey(StringRef ptx, const PTXOptions &options,
                            StringRef assembler);

  /// Fails unless the directory can be trusted (checkCacheDirectory). To be
  /// asked before all that follows.
  llvm::Error check() const;

  /// None if there is no entry, or a damaged one. Fails for one that somebody
  /// else may have made.
  llvm::Expected<std::optional<std::string>> lookup(StringRef key) const;

  llvm::Error insert(StringRef key, StringRef cubin) const;

  /// Removes what was not read for a month, and more if all together take over
  /// 1 GiB, the oldest first. Looks every 20 minutes at most, whoever asks.
  void prune() const;

private:
  explicit KernelCache(std::string directory)
      : directory(std::move(directory)) {}

  std::string getPath(StringRef key) const;

  std::string directory;
};

} // namespace mlir::fp8

#endif // FP8_TARGET_NVPTX_KERNELCACHE_H
