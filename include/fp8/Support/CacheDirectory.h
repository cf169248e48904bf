//===- CacheDirectory.h - Where things are kept -----------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_SUPPORT_CACHEDIRECTORY_H
#define FP8_SUPPORT_CACHEDIRECTORY_H

#include "llvm/ADT/StringRef.h"

#include <optional>
#include <string>

namespace mlir::fp8 {

/// fp8/NAME in XDG_CACHE_HOME or in ~/.cache, which need not exist; none
/// without a home.
std::optional<std::string> getCacheDirectory(llvm::StringRef name);

} // namespace mlir::fp8

#endif // FP8_SUPPORT_CACHEDIRECTORY_H
