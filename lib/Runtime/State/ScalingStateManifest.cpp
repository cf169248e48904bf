//===- ScalingStateManifest.cpp - What a state is made of -----------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ScalingStateDetail.h"
#include "Tensors/StrictJSON.h"

#include <algorithm>
#include <iterator>
#include <set>

using namespace fp8rt;
using namespace fp8rt::detail;
using nlohmann::json;

/// No tensor is larger, nor does a slot keep more: a typing error should not
/// take all memory.
static constexpr int64_t kMaxCache = int64_t(1) << 40;
static constexpr int64_t kMaxWords = int64_t(1) << 20;
static constexpr const char *kFormatNames[] = {
#define FP8_CODE_FORMAT(NAME, TEXT, ...) TEXT,
#include "fp8/Formats.def"
};
/// Keys that are not the recipe's.
static constexpr std::string_view kOwnKeys[] = {"version", "recipe", "words",
                                                "slots", "uses"};

const char *detail::stringifyFormat(Format format) {
  return kFormatNames[static_cast<size_t>(format)];
}

const RecipeValue *Recipe::lookup(std::string_view key) const {
  for (const auto &[name, value] : settings)
    if (name == key)
      return &value;
  return nullptr;
}

namespace {
/// Checks a manifest; the first finding becomes the error.
class ManifestParser {
public:
  ManifestParser(Manifest &manifest, std::string &error)
      : manifest(manifest), error(error) {}

  bool parse(const json &root);

private:
  bool parseSlot(const json &entry, size_t index);
  bool parseUses(const json &root);
  bool parseRecipe(const json &root);
  bool parseDelayed(const json &root);
  bool parseOther(const json &root);

  bool checkKeys(const json &object,
                 std::initializer_list<std::string_view> required,
                 const std::vector<std::string_view> &optional);
  /// The readers leave `result` alone when the key is missing.
  bool readInteger(const json &object, const char *key, int64_t low,
                   int64_t high, int64_t &result);
  bool readString(const json &object, const char *key, std::string &result);
  template <typename Enum, size_t count>
  bool readEnum(const json &object, const char *key,
                const char *const (&names)[count], Enum &result);

  bool fail(const std::string &message) {
    error = "manifest" + where + ": " + message;
    return false;
  }
  bool fail(const char *key, const std::string &expected, const json &value) {
    return fail("expected " + std::string(key) + " to be " + expected +
                ", but got " + summarize(value));
  }

  Manifest &manifest;
  std::string &error;
  std::string where;
};
} // namespace

/// A value that an option may have; nothing for an array, an object, null or an
/// integer that does not fit.
static std::optional<RecipeValue> getScalar(const json &value) {
  if (value.is_boolean())
    return value.get<bool>();
  // Only integers above INT64_MAX are unsigned and do not fit.
  if (value.is_number_unsigned() &&
      value.get<uint64_t>() > static_cast<uint64_t>(INT64_MAX))
    return std::nullopt;
  if (value.is_number_integer())
    return value.get<int64_t>();
  if (value.is_number_float())
    return value.get<double>();
  if (value.is_string())
    return value.get<std::string>();
  return std::nullopt;
}

bool ManifestParser::checkKeys(const json &object,
                               std::initializer_list<std::string_view> required,
                               const std::vector<std::string_view> &optional) {
  for (std::string_view key : required)
    if (!object.contains(key))
      return fail("expected the key '" + std::string(key) +
                  "', but it is missing");
  for (const auto &[key, value] : object.items()) {
    if (std::count(required.begin(), required.end(), key) ||
        std::count(optional.begin(), optional.end(), key))
      continue;
    std::string known;
    auto add = [&](std::string_view name) {
      known += (known.empty() ? "" : ", ") + std::string(name);
    };
    std::for_each(required.begin(), required.end(), add);
    std::for_each(optional.begin(), optional.end(), add);
    return fail("expected the keys " + known + ", but got " + quote(key));
  }
  return true;
}

bool ManifestParser::readInteger(const json &object, const char *key,
                                 int64_t low, int64_t high, int64_t &result) {
  auto entry = object.find(key);
  if (entry == object.end())
    return true;
  std::optional<RecipeValue> value = getScalar(*entry);
  auto *number = value ? std::get_if<int64_t>(&*value) : nullptr;
  if (!number || *number < low || *number > high)
    return fail(key,
                low == high ? std::to_string(low)
                            : "an integer in " + std::to_string(low) + ".." +
                                  std::to_string(high),
                *entry);
  result = *number;
  return true;
}

bool ManifestParser::readString(const json &object, const char *key,
                                std::string &result) {
  auto entry = object.find(key);
  if (entry == object.end())
    return true;
  // The interface hands names out as C strings.
  if (!entry->is_string() ||
      entry->get_ref<const std::string &>().find('\0') != std::string::npos)
    return fail(key, "a string without NUL", *entry);
  result = entry->get<std::string>();
  return true;
}

template <typename Enum, size_t count>
bool ManifestParser::readEnum(const json &object, const char *key,
                              const char *const (&names)[count], Enum &result) {
  auto entry = object.find(key);
  if (entry == object.end())
    return true;
  std::string known;
  for (size_t i = 0; i < count; ++i) {
    if (*entry == names[i]) {
      result = static_cast<Enum>(i);
      return true;
    }
    known += (i ? ", " : "") + std::string(names[i]);
  }
  return fail(key, "one of " + known, *entry);
}

bool ManifestParser::parseSlot(const json &entry, size_t index) {
  where = " slot " + std::to_string(index);
  if (!entry.is_object())
    return fail("expected an object, but got " + summarize(entry));
  Slot slot;
  if (!checkKeys(entry, {"name", "format"}, {"role", "operand", "cache"}) ||
      !readString(entry, "name", slot.name))
    return false;
  if (slot.name.empty())
    return fail("name", "not empty", entry["name"]);
  where += " '" + slot.name + "'";
  if (!readEnum(entry, "format", kFormatNames, slot.format) ||
      !readString(entry, "role", slot.role) ||
      !readString(entry, "operand", slot.operand) ||
      !readInteger(entry, "cache", 0, kMaxCache, slot.cache))
    return false;
  manifest.slots.push_back(std::move(slot));
  where.clear();
  return true;
}

bool ManifestParser::parseUses(const json &root) {
  auto found = root.find("uses");
  if (found == root.end())
    return true;
  auto numSlots = static_cast<int64_t>(manifest.slots.size());
  std::string expected = "lists of slots, which are integers from 0 to below " +
                         std::to_string(numSlots) + ", by functions";
  if (!found->is_object())
    return fail("uses", expected, *found);
  for (const auto &[function, entries] : found->items()) {
    if (!entries.is_array())
      return fail("uses", expected, entries);
    std::vector<int64_t> &slots = manifest.uses[function];
    for (const json &entry : entries) {
      std::optional<RecipeValue> value = getScalar(entry);
      auto *slot = value ? std::get_if<int64_t>(&*value) : nullptr;
      if (!slot || *slot < 0 || *slot >= numSlots)
        return fail("uses", expected, entry);
      slots.push_back(*slot);
    }
  }
  return true;
}

static RecipeValue getDefault(const RecipeKey &key) {
  std::string text = key.defaultText;
  if (key.kind == RecipeKey::Bool)
    return text == "true";
  if (key.kind == RecipeKey::Integer)
    return static_cast<int64_t>(std::stoll(text));
  return text;
}

static DelayedRule makeDelayedRule(const Recipe &recipe) {
  auto getInteger = [&](const char *key) {
    return std::get<int64_t>(*recipe.lookup(key));
  };
  auto getWord = [&](const char *key) {
    return *findWord(kDelayedSchema.lookup(key)->words,
                     std::get<std::string>(*recipe.lookup(key)));
  };
  return {getInteger("amax_history_len"),
          static_cast<AmaxComputeAlgo>(getWord("amax_compute_algo")),
          getInteger("margin"),
          static_cast<DelayedCompat>(getWord("compat")),
          std::get<bool>(*recipe.lookup("pow2")),
          static_cast<InitialScale>(getWord("initial"))};
}

bool ManifestParser::parseDelayed(const json &root) {
  Recipe &recipe = manifest.recipe;
  std::vector<const RecipeKey *> keys;
  std::vector<std::string_view> known = {"recipe", "words", "uses"};
  for (const RecipeKey &key : kDelayedSchema)
    if (key.inState) {
      keys.push_back(&key);
      known.push_back(key.name);
    }
  if (!checkKeys(root, {"version", "slots"}, known))
    return false;
  for (const RecipeKey *key : keys) {
    auto entry = root.find(key->name);
    std::optional<RecipeValue> value =
        entry == root.end() ? getDefault(*key) : getScalar(*entry);
    if (!value || !isValid(*key, *value))
      return fail(key->name, describeExpected(*key), *entry);
    recipe.settings.push_back({key->name, std::move(*value)});
  }
  recipe.delayed = makeDelayedRule(recipe);
  if (std::optional<KeyConflict> conflict = findConflict(*recipe.delayed))
    return fail(conflict->key, conflict->expected, root[conflict->key]);
  // The compiler says it too: its code and this library have to agree.
  recipe.numWords = recipe.delayed->getNumWords();
  int64_t words;
  return readInteger(root, "words", recipe.numWords, recipe.numWords, words);
}

bool ManifestParser::parseOther(const json &root) {
  Recipe &recipe = manifest.recipe;
  for (std::string_view key : {"version", "words", "slots"})
    if (!root.contains(key))
      return fail("expected the key '" + std::string(key) +
                  "', but it is missing");
  for (const auto &[key, entry] : root.items()) {
    if (std::count(std::begin(kOwnKeys), std::end(kOwnKeys), key))
      continue;
    std::optional<RecipeValue> value = getScalar(entry);
    if (!value)
      return fail(key.c_str(), "true or false, a number or a string", entry);
    recipe.settings.push_back({key, std::move(*value)});
  }
  return readInteger(root, "words", 0, kMaxWords, recipe.numWords);
}

bool ManifestParser::parseRecipe(const json &root) {
  std::string &name = manifest.recipe.name = kDelayedSchema.name;
  if (!readString(root, "recipe", name))
    return false;
  if (name.empty())
    return fail("recipe", "not empty", root["recipe"]);
  return name == kDelayedSchema.name ? parseDelayed(root) : parseOther(root);
}

bool ManifestParser::parse(const json &root) {
  if (!root.is_object())
    return fail("expected an object, but got " + summarize(root));
  // Another version may have other keys, hence first of all.
  int64_t version = 0;
  if (!readInteger(root, "version", 1, 1, version) || !parseRecipe(root))
    return false;
  if (!root["slots"].is_array())
    return fail("slots", "an array", root["slots"]);
  std::set<std::string_view> names;
  manifest.slots.reserve(root["slots"].size());
  for (const json &entry : root["slots"]) {
    if (!parseSlot(entry, manifest.slots.size()))
      return false;
    if (!names.insert(manifest.slots.back().name).second)
      return fail("expected unique names of slots, but got '" +
                  manifest.slots.back().name + "' twice");
  }
  return parseUses(root);
}

bool detail::isSlotName(const std::string &name) {
  // Printing without what is no UTF-8 shows whether there was any.
  std::string text =
      json(name).dump(-1, ' ', false, json::error_handler_t::ignore);
  return !name.empty() && json::parse(text) == name;
}

bool detail::parseManifest(std::string_view text, Manifest &manifest,
                           std::string &error) {
  json root;
  if (!parseStrictJSON(text, "the manifest", 0, root, error))
    return false;
  manifest = Manifest();
  const json &checked = root;
  return ManifestParser(manifest, error).parse(checked);
}

std::string detail::printManifest(const Manifest &manifest) {
  json slots = json::array();
  for (const Slot &slot : manifest.slots) {
    slots.push_back({{"name", slot.name},
                     {"format", stringifyFormat(slot.format)},
                     {"role", slot.role},
                     {"operand", slot.operand}});
    if (slot.cache != 0)
      slots.back()["cache"] = slot.cache;
  }
  const Recipe &recipe = manifest.recipe;
  json root = {
      {"version", 1}, {"recipe", recipe.name}, {"slots", std::move(slots)}};
  for (const auto &[function, uses] : manifest.uses)
    root["uses"][function] = uses;
  // For delayed it follows from the options.
  if (!recipe.delayed)
    root["words"] = recipe.numWords;
  for (const auto &[key, value] : recipe.settings)
    std::visit([&, name = key](const auto &known) { root[name] = known; },
               value);
  return root.dump();
}

std::string detail::stringifyValue(const RecipeValue &value) {
  if (auto *text = std::get_if<std::string>(&value))
    return *text;
  return std::visit([](const auto &known) { return json(known).dump(); },
                    value);
}

std::string detail::printRecipe(const Recipe &recipe) {
  std::string text = recipe.name;
  for (const auto &[key, value] : recipe.settings)
    text += "," + key + "=" + stringifyValue(value);
  return text;
}
