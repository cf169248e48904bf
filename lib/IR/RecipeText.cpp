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
#include <cmath>

using namespace mlir;
using namespace mlir::fp8;

using fp8rt::RecipeKey;
using fp8rt::RecipeSchema;
using fp8rt::RecipeValue;

static std::string joinNames(ArrayRef<const RecipeSchema *> recipes) {
  return llvm::join(llvm::map_range(recipes,
                                    [](const RecipeSchema *recipe) {
                                      return StringRef(recipe->name);
                                    }),
                    ", ");
}

static std::string joinKeys(const RecipeSchema &schema) {
  return llvm::join(
      llvm::map_range(schema,
                      [](const RecipeKey &key) { return StringRef(key.name); }),
      ", ");
}

/// `text` as a value of the key's kind; nothing if it is none.
static std::optional<RecipeValue> parseValue(const RecipeKey &key,
                                             StringRef text) {
  switch (key.kind) {
  case RecipeKey::Bool:
    if (text == "true" || text == "false")
      return RecipeValue(text == "true");
    return std::nullopt;
  case RecipeKey::Integer:
    if (int64_t number; !text.getAsInteger(10, number))
      return RecipeValue(number);
    return std::nullopt;
  case RecipeKey::Float:
    if (double number; !text.getAsDouble(number) && std::isfinite(number))
      return RecipeValue(number);
    return std::nullopt;
  case RecipeKey::Word: {
    // A hyphen inside a word is a spelling.
    std::string word = text.str();
    llvm::replace(word, '-', '_');
    return RecipeValue(std::move(word));
  }
  case RecipeKey::Path:
    return RecipeValue(text.str());
  }
  llvm_unreachable("unknown kind of a key");
}

/// A value in the syntax of attributes.
static std::string printValue(const RecipeKey &key, const RecipeValue &value) {
  if (auto *flag = std::get_if<bool>(&value))
    return *flag ? "true" : "false";
  if (auto *number = std::get_if<int64_t>(&value))
    return std::to_string(*number);
  if (auto *number = std::get_if<double>(&value)) {
    // Floats need a decimal point there, on a command line they should not.
    SmallString<32> digits;
    llvm::APFloat(*number).toString(digits);
    std::string text = digits.str().str();
    if (text.find('.') == std::string::npos) {
      size_t exponent = text.find('E');
      text.insert(exponent == std::string::npos ? text.size() : exponent, ".0");
    }
    return text;
  }
  const std::string &text = std::get<std::string>(value);
  if (key.kind == RecipeKey::Word)
    return text;
  std::string quoted;
  llvm::raw_string_ostream os(quoted);
  os << '"';
  llvm::printEscapedString(text, os);
  os << '"';
  return quoted;
}

RecipeAttrInterface
fp8::parseRecipe(StringRef text, MLIRContext *context,
                 llvm::function_ref<InFlightDiagnostic()> emitError) {
  StringRef given = text.split(',').first.trim();
  StringRef rest = text.split(',').second;
  std::string spelled = given.str();
  llvm::replace(spelled, '-', '_');
  ArrayRef<const RecipeSchema *> recipes =
      context->getOrLoadDialect<FP8Dialect>()->getRecipes();
  const auto *found = llvm::find_if(recipes, [&](const RecipeSchema *recipe) {
    return spelled == recipe->name;
  });
  if (found == recipes.end()) {
    emitError() << "expected a recipe (" << joinNames(recipes) << "), but got '"
                << given << "'";
    return {};
  }

  const RecipeSchema &schema = **found;
  StringRef name = schema.name;
  SmallVector<StringRef> settings;
  if (text.contains(','))
    rest.split(settings, ',');
  SmallVector<std::string> assignments;
  llvm::StringSet<> seen;
  for (StringRef setting : settings) {
    if (setting.trim().empty()) {
      emitError() << "expected key=value after a comma in recipe '" << text
                  << "', but got nothing";
      return {};
    }
    auto [keyText, value] = setting.split('=');
    std::string keyName = keyText.trim().str();
    llvm::replace(keyName, '-', '_');
    value = value.trim();
    const RecipeKey *key = schema.lookup(keyName);
    if (!key) {
      InFlightDiagnostic diagnostic = emitError();
      diagnostic << "unknown key '" << keyText.trim() << "' of recipe '" << name
                 << "': expected ";
      if (schema.numKeys == 0)
        diagnostic << "no key";
      else
        diagnostic << "one of " << joinKeys(schema);
      return {};
    }
    if (value.empty()) {
      emitError() << "expected a value for key '" << keyName << "' of recipe '"
                  << name << "', e.g. " << keyName << "=...";
      return {};
    }
    if (!seen.insert(keyName).second) {
      emitError() << "expected key '" << keyName << "' of recipe '" << name
                  << "' once, but got it twice";
      return {};
    }
    std::optional<RecipeValue> parsed = parseValue(*key, value);
    if (!parsed || !isValid(*key, *parsed)) {
      emitError() << "expected " << describeExpected(*key) << " for key '"
                  << keyName << "' of recipe '" << name << "', but got '"
                  << value << "'";
      return {};
    }
    assignments.push_back(keyName + " = " + printValue(*key, *parsed));
  }
  for (const RecipeKey &key : schema)
    if (!key.defaultText && !seen.contains(key.name)) {
      emitError() << "expected key '" << key.name << "' of recipe '" << name
                  << "', " << describeExpected(key);
      return {};
    }

  std::string attribute = name.contains('.') ? "#" : "#fp8.";
  attribute += name;
  if (!assignments.empty())
    attribute += "<" + llvm::join(assignments, ", ") + ">";
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
