//===- StrictJSON.cpp - JSON from outside ---------------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The JSON library's exceptions and lenience end in this file.
//
//===----------------------------------------------------------------------===//

#include "StrictJSON.h"

#include <optional>
#include <set>
#include <vector>

using namespace fp8rt;
using nlohmann::json;

std::string detail::quote(std::string_view name) {
  std::string text =
      json(name).dump(/*indent=*/-1, /*indent_char=*/' ',
                      /*ensure_ascii=*/false, json::error_handler_t::replace);
  text.front() = text.back() = '\'';
  return text;
}

std::string detail::summarize(const json &value) {
  // Invalid UTF-8 never gets here: the lexer refuses it.
  std::string text = value.dump();
  constexpr size_t limit = 60;
  if (text.size() <= limit)
    return text;
  size_t cut = limit;
  while (cut > 0 && (static_cast<uint8_t>(text[cut]) & 0xC0) == 0x80)
    --cut;
  return text.substr(0, cut) + "...";
}

namespace {
/// Looks at a text before it becomes a value. The library keeps the last of
/// equal keys; two tools could then see two different values in one file. One
/// set per open object finds them. It also prints and destroys values by
/// recursion, so nothing deeper than our formats need is accepted.
class Checker final : public nlohmann::json_sax<json> {
public:
  static constexpr size_t maxDepth = 8;

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t &) override { return true; }
  bool string(string_t &) override { return true; }
  bool binary(binary_t &) override { return true; }
  bool start_object(size_t) override { return open(); }
  bool end_object() override { return close(); }
  bool start_array(size_t) override { return open(); }
  bool end_array() override { return close(); }
  bool key(string_t &name) override {
    if (!keys.back().insert(name).second && !duplicate)
      duplicate = name;
    return true;
  }
  bool parse_error(size_t position, const std::string &,
                   const nlohmann::detail::exception &failure) override {
    if (failure.id / 100 == 1) // a parse_error
      malformedAt = position;
    else
      problem = failure.what();
    return false;
  }

  bool isTooDeep = false;
  std::optional<std::string> duplicate;
  std::optional<size_t> malformedAt;
  /// Such as a number beyond the range of a double.
  std::optional<std::string> problem;

private:
  bool open() {
    keys.emplace_back();
    isTooDeep |= keys.size() > maxDepth;
    return true;
  }
  bool close() {
    keys.pop_back();
    return true;
  }

  /// Keys of each object or array that is open.
  std::vector<std::set<std::string>> keys;
};
} // namespace

bool detail::parseStrictJSON(std::string_view text, std::string_view what,
                             size_t offset, json &root, std::string &error) {
  std::string subject = "expected " + std::string(what) + " to ";
  try {
    Checker checker;
    // To the library a NUL is the end, whatever follows.
    if (size_t end = text.find('\0'); end != std::string_view::npos)
      checker.malformedAt = end + 1;
    else
      json::sax_parse(text.begin(), text.end(), &checker);
    if (checker.malformedAt)
      error = subject + "be JSON in UTF-8, but it is malformed at byte " +
              std::to_string(*checker.malformedAt + offset);
    else if (checker.problem)
      error = subject + "be JSON in UTF-8, but got " + *checker.problem;
    else if (checker.isTooDeep)
      error = subject + "nest at most " + std::to_string(Checker::maxDepth) +
              " levels deep";
    else if (checker.duplicate)
      error = "expected keys to be unique, but got " +
              quote(*checker.duplicate) + " twice";
    else {
      root = json::parse(text.begin(), text.end());
      return true;
    }
  } catch (const std::exception &failure) {
    // No memory for a long text.
    error = subject + "be JSON in UTF-8, but got " + failure.what();
  }
  return false;
}
