//===- StrictJSON.h - JSON from outside -------------------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_RUNTIME_TENSORS_STRICTJSON_H
#define FP8_LIB_RUNTIME_TENSORS_STRICTJSON_H

#include <nlohmann/json.hpp>

#include <string>
#include <string_view>

namespace fp8rt::detail {

/// Parses UTF-8 with unique keys and little nesting. `what` is what errors call
/// the text, and `offset` is what is added to the positions in them.
bool parseStrictJSON(std::string_view text, std::string_view what,
                     size_t offset, nlohmann::json &root, std::string &error);

/// A name in single quotes, on one line: what is special in JSON is escaped.
std::string quote(std::string_view name);

/// The text of a parsed value, but no more than a line of it.
std::string summarize(const nlohmann::json &value);

} // namespace fp8rt::detail

#endif // FP8_LIB_RUNTIME_TENSORS_STRICTJSON_H
