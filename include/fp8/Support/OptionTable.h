//===- OptionTable.h - Structs of options by their keys ---------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Pass pipelines, command lines and the C API all take options as text, under
// the same keys. KeyedOption.td makes the tables.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_SUPPORT_OPTIONTABLE_H
#define FP8_SUPPORT_OPTIONTABLE_H

#include "fp8/Support/Suggestion.h"
#include "mlir/Support/LLVM.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVectorExtras.h"
#include "llvm/Support/Error.h"

#include <string>
#include <variant>
#include <vector>

namespace mlir::fp8 {

/// Reads an option's value; `expected` is what it has to be.
struct OptionReader {
  bool read(std::string &value) {
    value = text.str();
    return true;
  }
  bool read(std::vector<std::string> &values) {
    values.push_back(text.str());
    return true;
  }
  bool read(bool &value) {
    expected = "true or false";
    // A flag stands for itself.
    value = text.empty() || text == "true" || text == "1";
    return value || text == "false" || text == "0";
  }
  bool read(double &value) {
    expected = "a number";
    return !text.getAsDouble(value);
  }

  StringRef text;
  StringRef expected;
};

/// An option of the struct `Options`.
template <typename Options>
struct OptionInfo {
  /// Sets the option; a list gains an element. Returns what was expected in
  /// place of `text`, or an empty string, in which case nothing has changed.
  template <typename Derived>
  StringRef set(Derived &options, StringRef text) const {
    return std::visit(
        [&](auto member) -> StringRef {
          auto value = options.*member;
          OptionReader reader{text, ""};
          if (!reader.read(value))
            return reader.expected;
          options.*member = std::move(value);
          return "";
        },
        member);
  }

  StringRef key;
  std::variant<std::string Options::*, bool Options::*, double Options::*,
               std::vector<std::string> Options::*>
      member;
  /// What stands for a value in help texts; empty for a flag.
  StringRef value;
  StringRef help;
  StringRef formerKey;
};

/// Tells on the standard error that option `former` is called `key` now.
void warnOfFormerOption(StringRef former, StringRef key);

/// The option called `key`, or null. One that was called so before is found
/// with a warning.
template <typename Options>
const OptionInfo<Options> *findOption(ArrayRef<OptionInfo<Options>> table,
                                      StringRef key) {
  const auto *found =
      llvm::find_if(table, [&](const OptionInfo<Options> &info) {
        return info.key == key || (!key.empty() && info.formerKey == key);
      });
  if (found == table.end())
    return nullptr;
  if (found->key != key)
    warnOfFormerOption(key, found->key);
  return found;
}

/// That no option is called `key`, but some are called `keys`.
llvm::Error makeUnknownOptionError(StringRef key, ArrayRef<StringRef> keys);

template <typename Options>
llvm::Error makeUnknownOptionError(StringRef key,
                                   ArrayRef<OptionInfo<Options>> table) {
  return makeUnknownOptionError(
      key, llvm::map_to_vector(table, [](const OptionInfo<Options> &info) {
        return info.key;
      }));
}

/// That option `key` is not what was expected.
llvm::Error makeOptionValueError(StringRef key, StringRef expected,
                                 StringRef text);

} // namespace mlir::fp8

#endif // FP8_SUPPORT_OPTIONTABLE_H
