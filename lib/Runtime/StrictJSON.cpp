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

bool detail::parseStrictJSON(std::string_view text, std::string_view what,
                             size_t offset, json &root, std::string &error) {
  // The library keeps the last of equal keys; two tools could then see two
  // different values in one file. One set per open object finds them. It also
  // prints and destroys values by recursion, so nothing deeper than our
  // formats need is kept.
  constexpr int maxDepth = 8;
  std::vector<std::set<std::string>> openObjects;
  std::optional<std::string> duplicate;
  bool tooDeep = false;
  json::parser_callback_t check = [&](int depth, json::parse_event_t event,
                                      json &parsed) {
    if (event == json::parse_event_t::object_start)
      openObjects.emplace_back();
    else if (event == json::parse_event_t::object_end)
      openObjects.pop_back();
    else if (event == json::parse_event_t::key &&
             !openObjects.back().insert(parsed.get<std::string>()).second &&
             !duplicate)
      duplicate = parsed.get<std::string>();
    tooDeep |= depth > maxDepth;
    return depth <= maxDepth;
  };
  std::string subject = "expected " + std::string(what) + " to ";
  try {
    root = json::parse(text.begin(), text.end(), check);
  } catch (const json::parse_error &failure) {
    error = subject + "be JSON in UTF-8, but it is malformed at byte " +
            std::to_string(failure.byte + offset);
    return false;
  } catch (const std::exception &failure) {
    // A number beyond the range of a double, or no memory for a long text.
    error = subject + "be JSON in UTF-8, but got " + failure.what();
    return false;
  }
  if (tooDeep) {
    error =
        subject + "nest at most " + std::to_string(maxDepth) + " levels deep";
    return false;
  }
  if (duplicate) {
    error =
        "expected keys to be unique, but got " + quote(*duplicate) + " twice";
    return false;
  }
  return true;
}
