//===- RecipeSchema.h - What a recipe can be told ---------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Not part of libfp8rt's C interface: C++ without MLIR, for the compiler and
// for states. The schemas themselves are made from the recipes' TableGen
// sources (fp8/IR/RecipeBase.td).
//
//===----------------------------------------------------------------------===//

#ifndef FP8_RUNTIME_RECIPESCHEMA_H
#define FP8_RUNTIME_RECIPESCHEMA_H

#include <cfloat>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

namespace fp8rt {

/// One of a recipe's options: `name=value` in text.
struct RecipeKey {
  enum Kind { Bool, Integer, Float, Word, Path };

  const char *name;
  Kind kind;
  /// Bounds of a number, both inclusive.
  double low, high;
  /// Those of a Word, by the values of its enum: "max, most_recent"; of a Path
  /// what it is: "path of a saved state".
  const char *words;
  /// As in text; null if a value has to be given.
  const char *defaultText;
  /// Whether the values in a scaling state depend on it.
  bool inState;
};

struct RecipeSchema {
  const char *name;
  const RecipeKey *keys;
  size_t numKeys;

  const RecipeKey *begin() const { return keys; }
  const RecipeKey *end() const { return keys + numKeys; }

  /// Null if there is no such key.
  const RecipeKey *lookup(std::string_view key) const {
    for (const RecipeKey &candidate : *this)
      if (key == candidate.name)
        return &candidate;
    return nullptr;
  }
};

/// A Bool, an Integer, a Float, and a Word or a Path, in this order.
using RecipeValue = std::variant<bool, int64_t, double, std::string>;

/// The position of `word` among `words`; nothing if it is not there.
inline std::optional<size_t> findWord(std::string_view words,
                                      std::string_view word) {
  for (size_t index = 0, start = 0;; ++index) {
    size_t end = words.find(", ", start);
    if (words.substr(start, end - start) == word)
      return index;
    if (end == std::string_view::npos)
      return std::nullopt;
    start = end + 2;
  }
}

/// What a value of the key has to be, for messages: "an integer in 1..16".
inline std::string describeExpected(const RecipeKey &key) {
  auto print = [](double number) {
    std::string text = std::to_string(number);
    text.erase(text.find_last_not_of('0') + 1);
    if (text.back() == '.')
      text.pop_back();
    return text;
  };
  switch (key.kind) {
  case RecipeKey::Bool:
    return "true or false";
  case RecipeKey::Integer:
    if (key.high - key.low == 1)
      return print(key.low) + " or " + print(key.high);
    return "an integer in " + print(key.low) + ".." + print(key.high);
  case RecipeKey::Float:
    if (key.high == FLT_MAX)
      return "a finite number of at least " + print(key.low);
    return "a number in " + print(key.low) + ".." + print(key.high);
  case RecipeKey::Word:
    return "one of " + std::string(key.words);
  case RecipeKey::Path:
    return "the " + std::string(key.words);
  }
  return {};
}

/// Whether the key may have `value`, by itself.
inline bool isValid(const RecipeKey &key, const RecipeValue &value) {
  auto isInRange = [&](double number) {
    return number >= key.low && number <= key.high;
  };
  switch (key.kind) {
  case RecipeKey::Bool:
    return std::holds_alternative<bool>(value);
  case RecipeKey::Integer:
    return std::holds_alternative<int64_t>(value) &&
           isInRange(static_cast<double>(std::get<int64_t>(value)));
  case RecipeKey::Float:
    return std::holds_alternative<double>(value) &&
           isInRange(std::get<double>(value));
  case RecipeKey::Word:
    return std::holds_alternative<std::string>(value) &&
           findWord(key.words, std::get<std::string>(value));
  case RecipeKey::Path:
    return std::holds_alternative<std::string>(value) &&
           !std::get<std::string>(value).empty();
  }
  return false;
}

} // namespace fp8rt

#endif // FP8_RUNTIME_RECIPESCHEMA_H
