//===- RecipeFile.cpp - Rules that map names to recipes -------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fp8/Transforms/RecipeFile.h"
#include "fp8/Support/InputFile.h"
#include "fp8/Support/JSON.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "llvm/Support/JSON.h"

using namespace mlir;
using namespace mlir::fp8;

FailureOr<RecipeFile>
RecipeFile::load(StringRef path, MLIRContext *context,
                 llvm::function_ref<InFlightDiagnostic()> emitError) {
  auto error = [&](const Twine &message) {
    emitError() << "recipe file '" << path << "': " << message;
    return failure();
  };
  auto buffer = readInputFile(path);
  if (!buffer)
    return error(llvm::toString(buffer.takeError()));
  llvm::Expected<llvm::json::Value> json = parseJSON((*buffer)->getBuffer());
  if (!json)
    return error(llvm::toString(json.takeError()));
  llvm::json::Object *root = json->getAsObject();
  if (!root)
    return error("expected a JSON object");

  RecipeFile file;
  bool hasVersion = false;
  for (auto &[key, value] : *root) {
    StringRef name = key;
    if (name == "version") {
      if (value.getAsInteger() != 1)
        return error("expected key 'version' to be 1");
      hasVersion = true;
    } else if (name == "first_layers_high_precision" ||
               name == "last_layers_high_precision") {
      std::optional<int64_t> count = value.getAsInteger();
      if (!count || *count < 0)
        return error("expected key '" + name +
                     "' to be a number that is not negative");
      (name.starts_with("first") ? file.firstLayers : file.lastLayers) = *count;
    } else if (name != "rules") {
      return error("unknown key '" + name +
                   "': expected version, rules, first_layers_high_precision "
                   "or last_layers_high_precision");
    }
  }
  if (!hasVersion)
    return error("expected key 'version'");

  llvm::json::Value *rules = root->get("rules");
  if (rules && !rules->getAsArray())
    return error("expected key 'rules' to be an array");
  if (!rules)
    return file;
  for (auto [index, value] : llvm::enumerate(*rules->getAsArray())) {
    std::string where = "rule " + std::to_string(index) + ": ";
    llvm::json::Object *rule = value.getAsObject();
    if (!rule)
      return error(where + "expected an object");
    for (auto &[key, unused] : *rule)
      if (key != "match" && key != "recipe")
        return error(where + "unknown key '" + StringRef(key) +
                     "': expected match or recipe");
    std::optional<llvm::StringRef> match = rule->getString("match");
    std::optional<llvm::StringRef> text = rule->getString("recipe");
    if (!match || !text)
      return error(where + "expected strings 'match' and 'recipe'");
    // A pattern refers to its text, which the context keeps: the JSON that it
    // comes from is gone by the time of the first match.
    llvm::Expected<llvm::GlobPattern> pattern = llvm::GlobPattern::create(
        StringAttr::get(context, *match).getValue(), /*MaxSubPatterns=*/1024);
    if (!pattern)
      return error(where +
                   "key 'match': " + llvm::toString(pattern.takeError()));
    RecipeAttrInterface recipe = parseRecipe(*text, context, [&] {
      return emitError() << "recipe file '" << path << "': " << where;
    });
    if (!recipe)
      return failure();
    file.rules.push_back({std::move(*pattern), recipe});
  }
  return file;
}

RecipeAttrInterface RecipeFile::lookup(StringRef name) const {
  for (const Rule &rule : rules)
    if (rule.pattern.match(name))
      return rule.recipe;
  return {};
}

SmallVector<int64_t> fp8::getLayers(ArrayRef<StringRef> names,
                                    int64_t &numLayers) {
  SmallVector<int64_t> layers(names.size(), -1);
  int64_t last = -1;
  for (auto [name, layer] : llvm::zip_equal(names, layers)) {
    SmallVector<StringRef> components;
    name.split(components, '.');
    for (StringRef component : components) {
      int64_t number;
      // A larger number is no layer's, but a date or an identifier.
      constexpr int64_t maxLayer = 1 << 20;
      if (component.getAsInteger(10, number) || number < 0 || number > maxLayer)
        continue;
      layer = number;
      last = std::max(last, number);
      break;
    }
  }
  numLayers = last + 1;
  if (last >= 0)
    return layers;
  // No name has a number: every contraction is a layer.
  for (auto [index, layer] : llvm::enumerate(layers))
    layer = index;
  numLayers = layers.size();
  return layers;
}
