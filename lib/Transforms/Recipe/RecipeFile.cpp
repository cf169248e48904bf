//===- RecipeFile.cpp - Rules that map names to recipes -------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fp8/Transforms/RecipeFile.h"
#include "fp8/IR/AttentionRecipe.h"
#include "fp8/Support/InputFile.h"
#include "fp8/Support/JSON.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/JSON.h"

using namespace mlir;
using namespace mlir::fp8;

/// What rules may be for.
static SmallVector<std::string> getRoles() {
  SmallVector<std::string> roles;
  for (GemmRole role : {GemmRole::Fprop, GemmRole::Dgrad, GemmRole::Wgrad})
    roles.push_back(stringifyGemmRole(role).str());
  for (AttentionRole role :
       {AttentionRole::QK, AttentionRole::PV, AttentionRole::DP,
        AttentionRole::DV, AttentionRole::DQ, AttentionRole::DK})
    roles.push_back(stringifyAttentionRole(role));
  return roles;
}

/// Whether all products that `role` stands for are attention's.
static bool isForAttention(const llvm::GlobPattern &role) {
  return llvm::none_of(
      ArrayRef{GemmRole::Fprop, GemmRole::Dgrad, GemmRole::Wgrad},
      [&](GemmRole each) { return role.match(stringifyGemmRole(each)); });
}

FailureOr<RecipeFile::Rule>
RecipeFile::readRule(llvm::json::Value &value, MLIRContext *context,
                     llvm::function_ref<LogicalResult(const Twine &)> error,
                     llvm::function_ref<InFlightDiagnostic()> emitError) {
  llvm::json::Object *rule = value.getAsObject();
  if (!rule)
    return error("expected an object");
  for (auto &[key, unused] : *rule)
    if (key != "match" && key != "role" && key != "recipe")
      return error("unknown key '" + StringRef(key) +
                   "': expected match, role or recipe");
  std::optional<llvm::StringRef> match = rule->getString("match");
  std::optional<llvm::StringRef> role = rule->getString("role");
  std::optional<llvm::StringRef> text = rule->getString("recipe");
  bool isWrong = (rule->get("match") && !match) || (rule->get("role") && !role);
  if (isWrong || (!match && !role) || !text)
    return error("expected strings 'match' and 'recipe', or 'role'");
  // A pattern refers to its text, which the context keeps: the JSON that it
  // comes from is gone by the time of the first match.
  auto makePattern = [&](StringRef glob) {
    return llvm::GlobPattern::create(StringAttr::get(context, glob).getValue(),
                                     /*MaxSubPatterns=*/1024);
  };
  llvm::Expected<llvm::GlobPattern> name = makePattern(match.value_or("*"));
  if (!name)
    return error("key 'match': " + llvm::toString(name.takeError()));
  std::optional<llvm::GlobPattern> ofRole;
  if (role) {
    llvm::Expected<llvm::GlobPattern> made = makePattern(*role);
    if (!made)
      return error("key 'role': " + llvm::toString(made.takeError()));
    if (llvm::none_of(getRoles(), [&](const std::string &known) {
          return made->match(known);
        }))
      return error("key 'role': expected some of " +
                   llvm::join(getRoles(), ", ") + ", but got '" + *role + "'");
    ofRole = std::move(*made);
  }
  std::string recipeText = text->str();
  AttentionTransforms transforms;
  // Keys of other products' recipes may have the same names.
  if (ofRole && isForAttention(*ofRole)) {
    auto taken = takeAttentionTransforms(recipeText, emitError);
    if (failed(taken))
      return failure();
    transforms = *taken;
  }
  RecipeAttrInterface recipe = parseRecipe(recipeText, context, emitError);
  if (!recipe)
    return failure();
  return Rule{std::move(*name), std::move(ofRole), recipe, transforms};
}

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
    FailureOr<Rule> rule = readRule(
        value, context,
        [&](const Twine &message) { return error(where + message); },
        [&] {
          return emitError() << "recipe file '" << path << "': " << where;
        });
    if (failed(rule))
      return failure();
    file.rules.push_back(std::move(*rule));
  }
  return file;
}

const RecipeFile::Rule *RecipeFile::find(StringRef name, StringRef role,
                                         bool isOfAttention) const {
  for (const Rule &rule : rules) {
    bool isForRole = rule.role ? rule.role->match(role) : !isOfAttention;
    if (isForRole && rule.name.match(name))
      return &rule;
  }
  return nullptr;
}

RecipeAttrInterface RecipeFile::lookup(StringRef name, StringRef role,
                                       bool isOfAttention) const {
  const Rule *rule = find(name, role, isOfAttention);
  return rule ? rule->recipe : RecipeAttrInterface();
}

AttentionTransforms RecipeFile::lookupTransforms(StringRef name,
                                                 StringRef role) const {
  const Rule *rule = find(name, role, /*isOfAttention=*/true);
  return rule ? rule->transforms : AttentionTransforms();
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
