//===- JSON.cpp - JSON from outside ---------------------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fp8/Support/JSON.h"
#include "llvm/ADT/StringSet.h"

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

/// What a string in JSON stands for, given with its quotes.
static std::string decode(StringRef quoted) {
  if (!quoted.contains('\\'))
    return quoted.drop_front().drop_back().str();
  llvm::Expected<llvm::json::Value> value = llvm::json::parse(quoted);
  if (!value) {
    llvm::consumeError(value.takeError());
    return quoted.str();
  }
  return value->getAsString().value_or(quoted).str();
}

/// An error if an object of valid JSON has a key twice, of which LLVM's parser
/// keeps the last.
static llvm::Error checkKeys(StringRef text) {
  // Those of the objects around a place; of an array an empty set.
  SmallVector<llvm::StringSet<>> keys;
  int64_t line = 1;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\n')
      ++line;
    else if (text[i] == '{' || text[i] == '[')
      keys.emplace_back();
    else if (text[i] == '}' || text[i] == ']')
      keys.pop_back();
    if (text[i] != '"')
      continue;
    size_t begin = i++;
    while (text[i] != '"')
      i += text[i] == '\\' ? 2 : 1;
    if (!text.substr(i + 1).ltrim().starts_with(":"))
      continue;
    std::string key = decode(text.slice(begin, i + 1));
    if (!keys.back().insert(key).second)
      return llvm::createStringError("expected keys to be unique, but got '" +
                                     key + "' a second time in line " +
                                     Twine(line));
  }
  return llvm::Error::success();
}

llvm::Expected<llvm::json::Value> fp8::parseJSON(StringRef text) {
  if (isTooDeep(text))
    return llvm::createStringError("expected JSON that nests at most " +
                                   Twine(kMaxDepth) + " levels deep");
  llvm::Expected<llvm::json::Value> value = llvm::json::parse(text);
  if (!value)
    return value.takeError();
  if (llvm::Error error = checkKeys(text))
    return std::move(error);
  return value;
}
