//===- ScalingStateManifest.cpp - What a state is made of -------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ScalingStateDetail.h"
#include "StrictJSON.h"

#include <algorithm>
#include <set>

using namespace fp8rt;
using namespace fp8rt::detail;
using nlohmann::json;

static constexpr const char *kAlgos[] = {"max", "most_recent"};
static constexpr const char *kCompats[] = {"te_fused", "te_unfused", "flax"};
/// No tensor is larger; a typing error should not take all memory.
static constexpr int64_t kMaxCache = int64_t(1) << 40;
static constexpr const char *kFormats[] = {"e4m3", "e5m2"};

const char *detail::stringifyAlgo(Algo algo) {
  return kAlgos[static_cast<size_t>(algo)];
}

const char *detail::stringifyCompat(Compat compat) {
  return kCompats[static_cast<size_t>(compat)];
}

const char *detail::stringifyFormat(Format format) {
  return kFormats[static_cast<size_t>(format)];
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
  bool parseRecipe(const json &root);

  bool checkKeys(const json &object,
                 std::initializer_list<std::string_view> required,
                 std::initializer_list<std::string_view> optional);
  /// The readers leave `result` alone when the key is missing.
  bool readInteger(const json &object, const char *key, int64_t low,
                   int64_t high, int64_t &result);
  bool readBool(const json &object, const char *key, bool &result);
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

bool ManifestParser::checkKeys(
    const json &object, std::initializer_list<std::string_view> required,
    std::initializer_list<std::string_view> optional) {
  for (std::string_view key : required)
    if (!object.contains(key))
      return fail("expected the key '" + std::string(key) +
                  "', but it is missing");
  for (const auto &[key, value] : object.items()) {
    if (std::count(required.begin(), required.end(), key) ||
        std::count(optional.begin(), optional.end(), key))
      continue;
    std::string known;
    for (auto keys : {required, optional})
      for (std::string_view name : keys)
        known += (known.empty() ? "" : ", ") + std::string(name);
    return fail("expected the keys " + known + ", but got '" + key + "'");
  }
  return true;
}

bool ManifestParser::readInteger(const json &object, const char *key,
                                 int64_t low, int64_t high, int64_t &result) {
  auto entry = object.find(key);
  if (entry == object.end())
    return true;
  // Of integers only those above INT64_MAX are unsigned and do not fit.
  bool fits = entry->is_number_integer() &&
              (!entry->is_number_unsigned() ||
               entry->get<uint64_t>() <= static_cast<uint64_t>(INT64_MAX));
  int64_t value = fits ? entry->get<int64_t>() : 0;
  if (!fits || value < low || value > high)
    return fail(key,
                low == high ? std::to_string(low)
                            : "an integer in " + std::to_string(low) + ".." +
                                  std::to_string(high),
                *entry);
  result = value;
  return true;
}

bool ManifestParser::readBool(const json &object, const char *key,
                              bool &result) {
  auto entry = object.find(key);
  if (entry == object.end())
    return true;
  if (!entry->is_boolean())
    return fail(key, "true or false", *entry);
  result = entry->get<bool>();
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
  if (!readEnum(entry, "format", kFormats, slot.format) ||
      !readString(entry, "role", slot.role) ||
      !readString(entry, "operand", slot.operand) ||
      !readInteger(entry, "cache", 0, kMaxCache, slot.cache))
    return false;
  manifest.slots.push_back(std::move(slot));
  where.clear();
  return true;
}

bool ManifestParser::parseRecipe(const json &root) {
  Recipe &recipe = manifest.recipe;
  if (!readInteger(root, "amax_history_len", 1, 65536, recipe.amaxHistoryLen) ||
      !readEnum(root, "amax_compute_algo", kAlgos, recipe.algo) ||
      !readInteger(root, "margin", -64, 64, recipe.margin) ||
      !readBool(root, "pow2", recipe.pow2) ||
      !readEnum(root, "compat", kCompats, recipe.compat) ||
      !readBool(root, "reduce_amax", recipe.reduceAmax))
    return false;
  if (recipe.compat == Compat::Flax && recipe.margin != 0)
    return fail("margin", "0 with compat flax, which knows no other",
                root["margin"]);
  if (recipe.compat == Compat::Flax && recipe.algo != Algo::Max)
    return fail("amax_compute_algo",
                "max with compat flax, which knows no other",
                root["amax_compute_algo"]);
  return true;
}

bool ManifestParser::parse(const json &root) {
  if (!root.is_object())
    return fail("expected an object, but got " + summarize(root));
  // Another version may have other keys, hence first of all.
  int64_t version = 0;
  if (!readInteger(root, "version", 1, 1, version) ||
      !checkKeys(root, {"version", "slots"},
                 {"amax_history_len", "amax_compute_algo", "margin", "pow2",
                  "compat", "reduce_amax"}) ||
      !parseRecipe(root))
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
  return true;
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
  return json({{"version", 1},
               {"slots", std::move(slots)},
               {"amax_history_len", recipe.amaxHistoryLen},
               {"amax_compute_algo", stringifyAlgo(recipe.algo)},
               {"margin", recipe.margin},
               {"pow2", recipe.pow2},
               {"compat", stringifyCompat(recipe.compat)},
               {"reduce_amax", recipe.reduceAmax}})
      .dump();
}
