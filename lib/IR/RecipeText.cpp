//===- RecipeText.cpp - Recipes as written on a command line --------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fp8/IR/FP8Attrs.h"
#include "mlir/AsmParser/AsmParser.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/StringSwitch.h"
#include <cmath>

using namespace mlir;
using namespace mlir::fp8;

/// The keys of every recipe, for messages: the one place that repeats the
/// parameter names of FP8Attrs.td, checked by test/Pipelines/recipe-text.mlir.
static ArrayRef<StringRef> getRecipeKeys(StringRef name) {
  static const StringRef current[] = {"format", "pow2", "amax_epsilon", "style",
                                      "accumulate"};
  static const StringRef block[] = {"format", "pow2",  "amax_epsilon",
                                    "x_dim",  "w_dim", "grad_dim"};
  static const StringRef mxfp8[] = {"format", "mode", "nonfinite", "weight_2d"};
  static const StringRef nvfp4[] = {"weight_2d"};
  static const StringRef delayed[] = {
      "format", "amax_history_len", "amax_compute_algo",
      "margin", "reduce_amax",      "compat",
      "pow2",   "accumulate"};
  static const StringRef staticKeys[] = {"state", "format", "accumulate"};
  return llvm::StringSwitch<ArrayRef<StringRef>>(name)
      .Cases({"current", "rowwise"}, current)
      .Case("block", block)
      .Case("mxfp8", mxfp8)
      .Case("nvfp4", nvfp4)
      .Case("delayed", delayed)
      .Case("static", staticKeys)
      .Default({});
}

/// The words that `key`, which takes an enum, accepts.
static std::string getKeywords(StringRef key) {
  auto join = [](auto last) {
    std::string words;
    for (uint32_t i = 0; i <= static_cast<uint32_t>(last); ++i) {
      words += i ? ", " : "";
      words += stringifyEnum(static_cast<decltype(last)>(i));
    }
    return words;
  };
  if (key == "format")
    return join(Format(getMaxEnumValForFormat()));
  if (key == "style")
    return join(ScaleStyle(getMaxEnumValForScaleStyle()));
  if (key == "accumulate")
    return join(Accumulate(getMaxEnumValForAccumulate()));
  if (key == "mode")
    return join(MXMode(getMaxEnumValForMXMode()));
  if (key == "nonfinite")
    return join(NonFinite(getMaxEnumValForNonFinite()));
  if (key == "amax_compute_algo")
    return join(AmaxComputeAlgo(getMaxEnumValForAmaxComputeAlgo()));
  assert(key == "compat" && "expected every key that takes an enum");
  return join(DelayedCompat(getMaxEnumValForDelayedCompat()));
}

RecipeAttrInterface
fp8::parseRecipe(StringRef text, MLIRContext *context,
                 llvm::function_ref<InFlightDiagnostic()> emitError) {
  static constexpr StringRef names[] = {"current", "rowwise", "block",  "mxfp8",
                                        "nvfp4",   "delayed", "static", "none"};
  context->getOrLoadDialect<FP8Dialect>();
  StringRef name = text.split(',').first.trim();
  StringRef rest = text.split(',').second;
  if (!llvm::is_contained(names, name)) {
    emitError() << "expected a recipe (" << llvm::join(ArrayRef(names), ", ")
                << "), but got '" << name << "'";
    return {};
  }

  ArrayRef<StringRef> keys = getRecipeKeys(name);
  std::string attribute = ("#fp8." + name).str();
  SmallVector<StringRef> settings;
  rest.split(settings, ',', /*MaxSplit=*/-1, /*KeepEmpty=*/false);
  SmallVector<std::string> assignments;
  llvm::StringSet<> seen;
  for (StringRef setting : settings) {
    auto [key, value] = setting.split('=');
    std::string normalKey = key.trim().str(), normalValue = value.trim().str();
    llvm::replace(normalKey, '-', '_');
    bool isPath = normalKey == "state";
    // A hyphen inside a word is a spelling, in front of a digit it is a sign.
    for (size_t i = 1; i < normalValue.size() && !isPath; ++i)
      if (normalValue[i] == '-' && llvm::isAlpha(normalValue[i - 1]) &&
          llvm::isAlpha(normalValue[0]))
        normalValue[i] = '_';
    if (!llvm::is_contained(keys, normalKey)) {
      InFlightDiagnostic diagnostic = emitError();
      diagnostic << "unknown key '" << key.trim() << "' of recipe '" << name
                 << "': expected ";
      if (keys.empty())
        diagnostic << "no key";
      else
        diagnostic << "one of " << llvm::join(keys, ", ");
      return {};
    }
    if (normalValue.empty()) {
      emitError() << "expected a value for key '" << normalKey
                  << "' of recipe '" << name << "', e.g. " << normalKey
                  << "=...";
      return {};
    }
    auto mismatch = [&](const Twine &expected) {
      emitError() << "expected " << expected << " for key '" << normalKey
                  << "' of recipe '" << name << "', but got '" << normalValue
                  << "'";
      return RecipeAttrInterface();
    };
    if (!seen.insert(normalKey).second) {
      emitError() << "expected key '" << normalKey << "' of recipe '" << name
                  << "' once, but got it twice";
      return {};
    }
    if (isPath) {
      std::string quoted;
      llvm::raw_string_ostream os(quoted);
      os << '"';
      llvm::printEscapedString(normalValue, os);
      os << '"';
      normalValue = quoted;
    } else if (llvm::is_contained({"pow2", "reduce_amax", "weight_2d"},
                                  normalKey)) {
      if (normalValue != "true" && normalValue != "false")
        return mismatch("true or false");
    } else if (llvm::is_contained(
                   {"amax_history_len", "margin", "x_dim", "w_dim", "grad_dim"},
                   normalKey)) {
      int64_t number;
      if (StringRef(normalValue).getAsInteger(10, number))
        return mismatch("an integer");
    } else if (normalKey == "amax_epsilon") {
      // Floats need a decimal point in MLIR's syntax, on a command line they
      // should not.
      double number;
      if (StringRef(normalValue).getAsDouble(number) || !std::isfinite(number))
        return mismatch("a finite number");
      SmallString<32> digits;
      llvm::APFloat(number).toString(digits);
      normalValue = digits.str().str();
      if (normalValue.find('.') == std::string::npos) {
        size_t exponent = normalValue.find('E');
        normalValue.insert(exponent == std::string::npos ? normalValue.size()
                                                         : exponent,
                           ".0");
      }
    } else if (std::string words = getKeywords(normalKey);
               !llvm::is_contained(llvm::split(words, ", "), normalValue)) {
      return mismatch("one of " + words);
    }
    assignments.push_back(normalKey + " = " + normalValue);
  }
  if (!assignments.empty())
    attribute += "<" + llvm::join(assignments, ", ") + ">";

  if (name == "static" && !seen.contains("state")) {
    emitError() << "expected key 'state' of recipe 'static', the path of a "
                   "saved state";
    return {};
  }

  // The parser's own diagnostics point into a text the user has not written:
  // keep the first one's words only.
  std::string reason;
  RecipeAttrInterface recipe;
  {
    ScopedDiagnosticHandler handler(context, [&](Diagnostic &diagnostic) {
      if (reason.empty())
        reason = diagnostic.str();
      return success();
    });
    recipe = dyn_cast_if_present<RecipeAttrInterface>(
        parseAttribute(attribute, context));
  }
  if (!recipe)
    emitError() << "recipe '" << text << "': " << reason;
  return recipe;
}
