//===- RecipeText.cpp - Recipes as written on a command line --------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fp8/IR/FP8Attrs.h"
#include "mlir/AsmParser/AsmParser.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringExtras.h"
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

using EmitError = llvm::function_ref<InFlightDiagnostic()>;

/// Names have dashes on the command line and underscores in attributes.
static std::string spellName(StringRef text) {
  std::string name = text.str();
  llvm::replace(name, '-', '_');
  return name;
}

static const RecipeSchema *findRecipe(StringRef given, MLIRContext *context,
                                      EmitError emitError) {
  std::string name = spellName(given);
  ArrayRef<const RecipeSchema *> recipes =
      context->getOrLoadDialect<FP8Dialect>()->getRecipes();
  const auto *found = llvm::find_if(recipes, [&](const RecipeSchema *recipe) {
    return name == recipe->name;
  });
  if (found != recipes.end())
    return *found;
  emitError() << "expected a recipe (" << joinNames(recipes) << "), but got '"
              << given << "'";
  return nullptr;
}

/// The settings that `text` gives of a recipe as its attribute has them, by
/// their keys.
static FailureOr<llvm::MapVector<const RecipeKey *, std::string>>
parseSettings(StringRef text, const RecipeSchema &schema, EmitError emitError) {
  StringRef name = schema.name;
  SmallVector<StringRef> settings;
  if (text.contains(','))
    text.split(',').second.split(settings, ',');
  llvm::MapVector<const RecipeKey *, std::string> assignments;
  for (StringRef setting : settings) {
    if (setting.trim().empty())
      return emitError() << "expected key=value after a comma in recipe '"
                         << text << "', but got nothing";
    auto [keyText, value] = setting.split('=');
    std::string keyName = spellName(keyText.trim());
    value = value.trim();
    const RecipeKey *key = schema.lookup(keyName);
    if (!key)
      return emitError() << "unknown key '" << keyText.trim() << "' of recipe '"
                         << name << "': expected "
                         << (schema.numKeys == 0
                                 ? "no key"
                                 : "one of " + joinKeys(schema));
    if (value.empty())
      return emitError() << "expected a value for key '" << keyName
                         << "' of recipe '" << name << "', e.g. " << keyName
                         << "=...";
    if (assignments.contains(key))
      return emitError() << "expected key '" << keyName << "' of recipe '"
                         << name << "' once, but got it twice";
    std::optional<RecipeValue> parsed = parseValue(*key, value);
    if (!parsed || !isValid(*key, *parsed))
      return emitError() << "expected " << describeExpected(*key)
                         << " for key '" << keyName << "' of recipe '" << name
                         << "', but got '" << value << "'";
    assignments[key] = printValue(*key, *parsed);
  }
  for (const RecipeKey &key : schema)
    if (!key.defaultText && !assignments.contains(&key))
      return emitError() << "expected key '" << key.name << "' of recipe '"
                         << name << "', " << describeExpected(key);
  return assignments;
}

RecipeAttrInterface fp8::parseRecipe(StringRef text, MLIRContext *context,
                                     EmitError emitError) {
  const RecipeSchema *schema =
      findRecipe(text.split(',').first.trim(), context, emitError);
  if (!schema)
    return {};
  auto settings = parseSettings(text, *schema, emitError);
  if (failed(settings))
    return {};

  StringRef name = schema->name;
  std::string attribute = name.contains('.') ? "#" : "#fp8.";
  attribute += name;
  if (!settings->empty())
    attribute +=
        "<" +
        llvm::join(llvm::map_range(*settings,
                                   [](const auto &setting) {
                                     return std::string(setting.first->name) +
                                            " = " + setting.second;
                                   }),
                   ", ") +
        ">";
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
