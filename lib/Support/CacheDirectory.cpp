//===- CacheDirectory.cpp - Where things are kept -------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fp8/Support/CacheDirectory.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"

using namespace mlir;

std::optional<std::string> fp8::getCacheDirectory(llvm::StringRef name) {
  // Unlike in LLVM's cache_directory, as the XDG Base Directory Specification
  // says: an empty or relative one is none.
  llvm::SmallString<128> directory;
  std::optional<std::string> xdg = llvm::sys::Process::GetEnv("XDG_CACHE_HOME");
  if (xdg && llvm::sys::path::is_absolute(*xdg))
    directory = *xdg;
  else if (llvm::sys::path::home_directory(directory))
    llvm::sys::path::append(directory, ".cache");
  else
    return std::nullopt;
  llvm::sys::path::append(directory, "fp8", name);
  return directory.str().str();
}
