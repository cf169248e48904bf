//===- Suggestion.h - What a misspelt name may have meant -------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_SUPPORT_SUGGESTION_H
#define FP8_SUPPORT_SUGGESTION_H

#include "llvm/ADT/StringRef.h"

#include <algorithm>
#include <string>

namespace mlir::fp8 {

/// "; did you mean 'x'?" with the one of `names` that is nearest to `name`;
/// empty if none is near.
template <typename Names>
std::string suggest(llvm::StringRef name, const Names &names) {
  std::string nearest;
  // Further away, it would be another name and not a misspelt one.
  unsigned limit = std::max<unsigned>(2, name.size() / 3);
  bool found = false;
  for (llvm::StringRef candidate : names) {
    unsigned distance =
        name.edit_distance(candidate, /*AllowReplacements=*/true, limit);
    if (distance > limit || (found && distance == limit))
      continue;
    limit = distance;
    nearest = candidate.str();
    found = true;
  }
  return found ? "; did you mean '" + nearest + "'?" : "";
}

} // namespace mlir::fp8

#endif // FP8_SUPPORT_SUGGESTION_H
