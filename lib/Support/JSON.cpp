//===- JSON.cpp - JSON from outside ---------------------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fp8/Support/JSON.h"

using namespace mlir;

/// No format of ours needs a tenth of it.
static constexpr int64_t kMaxDepth = 64;

/// Whether brackets that are not in strings nest deeper.
static bool isTooDeep(StringRef text) {
  int64_t depth = 0;
  bool isInString = false;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (isInString) {
      if (c == '\\')
        ++i;
      else if (c == '"')
        isInString = false;
    } else if (c == '"') {
      isInString = true;
    } else if (c == '[' || c == '{') {
      if (++depth > kMaxDepth)
        return true;
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
  return false;
}

llvm::Expected<llvm::json::Value> fp8::parseJSON(StringRef text) {
  if (isTooDeep(text))
    return llvm::createStringError("expected JSON that nests at most " +
                                   Twine(kMaxDepth) + " levels deep");
  return llvm::json::parse(text);
}
