//===- CacheDirectory.h - Where things are kept -----------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What is kept is code: only the user may have written it. python/fp8/cache.py
// asks the same of its directory.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_SUPPORT_CACHEDIRECTORY_H
#define FP8_SUPPORT_CACHEDIRECTORY_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <memory>
#include <optional>
#include <string>

namespace llvm {
class MemoryBuffer;
} // namespace llvm

namespace mlir::fp8 {

/// fp8/NAME in XDG_CACHE_HOME or in ~/.cache, which need not exist; none
/// without a home.
std::optional<std::string> getCacheDirectory(llvm::StringRef name);

/// Fails unless a directory is the user's, nobody else may write to it, and
/// nobody may put another in its place. The folders that it is in are the
/// user's or root's, and others may not write to them but for those where
/// everybody has to leave alone what is another's, such as /tmp; a
/// group of the user alone is no others. It need not exist.
llvm::Error checkCacheDirectory(llvm::StringRef directory);

/// Makes the directory, for the user alone, if there is none.
llvm::Error makeCacheDirectory(llvm::StringRef directory);

/// The contents of a file there; null if there is none. Fails for what is no
/// regular file, another user's, or may be written to by others.
llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>>
readCacheEntry(llvm::StringRef path);

} // namespace mlir::fp8

#endif // FP8_SUPPORT_CACHEDIRECTORY_H
