//===- ScalingStateFile.cpp - Saving and loading states -------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A saved state is a .safetensors file with one element (or row) per slot in
// each tensor. What slots keep for the recipe `delayed` are past amaxes, stored
// oldest first whatever `compat` is, so that reading and adapting need no case
// for it; for others they are words, stored as they are.
//
//===----------------------------------------------------------------------===//

#include "ScalingStateDetail.h"
#include "Tensors/StrictJSON.h"
#include "fp8/Runtime/Safetensors.h"

#include <algorithm>
#include <cfloat>
#include <cinttypes>
#include <cmath>
#include <cstdio>

using namespace fp8rt;
using namespace fp8rt::detail;

static constexpr const char *kKeyPrefix = "fp8.scaling_state.";
static constexpr const char *kVersionKey = "fp8.scaling_state.version";
static constexpr const char *kManifestKey = "fp8.scaling_state.manifest";
static constexpr const char *kChecksumKey = "fp8.scaling_state.checksum";
/// Versions of files that are written. Those of the first are read; they may
/// lack the checksum, so that one whose key is damaged is not missed there.
static constexpr const char *kVersion = "2", *kFirstVersion = "1";

namespace {
/// The tensors of a file. Histories have as many columns as a ring.
struct Contents {
  std::vector<float> amax, scale, amaxHistory, lastAmax;
  std::vector<int32_t> words;
  std::vector<int64_t> underflow, saturated, recorded, nonFinite;
  std::vector<int64_t> steps;

  /// Calls `visit(name, values, shape)` for each.
  template <typename Visitor>
  void visit(const Manifest &manifest, Visitor &&visitor) {
    const Recipe &recipe = manifest.recipe;
    auto n = static_cast<int64_t>(manifest.slots.size());
    visitor("amax", amax, {n});
    if (recipe.delayed)
      visitor("amax_history", amaxHistory,
              {n, static_cast<int64_t>(recipe.getRingLength())});
    visitor("last_amax", lastAmax, {n});
    visitor("non_finite", nonFinite, {n});
    visitor("recorded", recorded, {n});
    visitor("saturated", saturated, {n});
    visitor("scale", scale, {n});
    visitor("steps", steps, {});
    visitor("underflow", underflow, {n});
    if (!recipe.delayed)
      visitor("words", words, {n, recipe.numWords});
  }
};

/// FNV-1a in 64 bits: each of its steps has an inverse, so that no bit alone
/// can change unnoticed.
class Checksum {
public:
  void add(const void *bytes, size_t size) {
    const auto *begin = static_cast<const uint8_t *>(bytes);
    for (size_t i = 0; i < size; ++i)
      value = (value ^ begin[i]) * 0x100000001b3;
  }

  /// Sixteen digits.
  std::string print() const {
    char text[17];
    std::snprintf(text, sizeof(text), "%016" PRIx64, value);
    return text;
  }

private:
  uint64_t value = 0xcbf29ce484222325;
};

/// A file that has been opened and checked, but not been taken over.
class StateReader {
public:
  explicit StateReader(const std::string &path) : path(path) {}

  FileResult open();
  FileResult read();

  Manifest manifest;
  Contents contents;

private:
  FileResult checkTensors();
  /// What a slot keeps.
  std::string describeKept() const {
    const Recipe &recipe = manifest.recipe;
    return recipe.delayed
               ? std::to_string(recipe.getRingLength()) + " past amaxes"
               : std::to_string(recipe.numWords) + " words";
  }
  FileResult checkValues();
  FileResult fail(fp8rt_status status, const std::string &message) {
    return {status, path + ": " + message};
  }

  const std::string &path;
  std::optional<SafetensorsReader> file;
};
} // namespace

static constexpr DType getDType(const std::vector<float> &) {
  return DType::F32;
}
static constexpr DType getDType(const std::vector<int32_t> &) {
  return DType::I32;
}
static constexpr DType getDType(const std::vector<int64_t> &) {
  return DType::I64;
}

/// The checksum of the manifest as the file has it, and of the tensors' values.
static std::string computeChecksum(const std::string &text,
                                   const Manifest &manifest,
                                   Contents &contents) {
  Checksum checksum;
  checksum.add(text.data(), text.size());
  contents.visit(
      manifest, [&](const char *, auto &values, const std::vector<int64_t> &) {
        checksum.add(values.data(), values.size() * sizeof(values[0]));
      });
  return checksum.print();
}

//===----------------------------------------------------------------------===//
// Saving
//===----------------------------------------------------------------------===//

/// Caches belong to a process, functions to a program.
static Manifest withoutProgram(Manifest manifest) {
  manifest.uses.clear();
  for (Slot &slot : manifest.slots)
    slot.cache = 0;
  return manifest;
}

FileResult detail::saveState(const ScalingState &state,
                             const std::string &path) {
  size_t numSlots = state.getNumSlots(), ringLength = state.getRingLength();
  const Staging &pending = state.getPending();
  Contents contents{pending.amax,
                    state.scale,
                    {},
                    state.lastAmax,
                    {},
                    pending.underflow,
                    pending.saturated,
                    state.recorded,
                    state.nonFinite,
                    {state.steps}};
  for (float &amax : contents.amax)
    amax = makeAmax(getAmaxBits(amax));
  contents.amaxHistory.resize(numSlots * ringLength);
  for (size_t slot = 0; slot < numSlots; ++slot)
    state.readRing(slot, contents.amaxHistory.data() + slot * ringLength,
                   ringLength);
  if (!state.manifest.recipe.delayed)
    contents.words.assign(state.getWords(0), state.getWords(numSlots));

  std::vector<TensorData> tensors;
  contents.visit(state.manifest, [&](const char *name, auto &values,
                                     std::vector<int64_t> shape) {
    tensors.push_back(
        {name, getDType(values), std::move(shape), values.data()});
  });
  std::string manifest = printManifest(withoutProgram(state.manifest));
  std::string error;
  if (!writeSafetensors(
          path, std::move(tensors),
          {{kVersionKey, kVersion},
           {kManifestKey, manifest},
           {kChecksumKey, computeChecksum(manifest, state.manifest, contents)}},
          error))
    return {FP8RT_ERROR_FILE, error};
  return {FP8RT_OK, {}};
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

FileResult StateReader::open() {
  std::string error;
  std::optional<SafetensorsReader> opened =
      SafetensorsReader::open(path, error);
  if (!opened)
    return {FP8RT_ERROR_FILE, error};
  file.emplace(std::move(*opened));
  const Metadata &metadata = file->getHeader().metadata;
  auto version = metadata.find(kVersionKey);
  if (version == metadata.end())
    return fail(FP8RT_ERROR_FILE, "expected a scaling state, but the metadata "
                                  "has no " +
                                      std::string(kVersionKey));
  if (version->second != kVersion && version->second != kFirstVersion)
    return fail(FP8RT_ERROR_VERSION,
                "expected version " + std::string(kFirstVersion) + " or " +
                    kVersion + " of a scaling state, but got " +
                    quote(version->second));
  // A key of ours with a bit flipped would be one that is not looked for.
  for (const auto &[key, value] : metadata)
    if (key.rfind(kKeyPrefix, 0) == 0 && key != kVersionKey &&
        key != kManifestKey && key != kChecksumKey)
      return fail(FP8RT_ERROR_FILE,
                  "expected the metadata to be the version, the manifest and "
                  "the checksum, but got " +
                      quote(key));
  auto text = metadata.find(kManifestKey);
  if (text == metadata.end())
    return fail(FP8RT_ERROR_FILE, "expected the metadata " +
                                      std::string(kManifestKey) +
                                      ", but it is missing");
  if (version->second != kFirstVersion && !metadata.count(kChecksumKey))
    return fail(FP8RT_ERROR_FILE, "expected the metadata " +
                                      std::string(kChecksumKey) +
                                      ", but it is missing");
  if (!parseManifest(text->second, manifest, error))
    return fail(FP8RT_ERROR_FILE, error);
  return checkTensors();
}

FileResult StateReader::checkTensors() {
  const SafetensorsHeader &header = file->getHeader();
  FileResult result{FP8RT_OK, {}};
  size_t count = 0;
  contents.visit(manifest, [&](const char *name, auto &values,
                               const std::vector<int64_t> &shape) {
    ++count;
    const TensorInfo *info = header.lookup(name);
    if (result.status != FP8RT_OK)
      return;
    std::string what = "tensor '" + std::string(name) + "'";
    if (!info)
      result =
          fail(FP8RT_ERROR_FILE, "expected a " + what + ", but it is missing");
    else if (info->dtype != getDType(values))
      result = fail(
          FP8RT_ERROR_FILE,
          what + ": expected " + std::string(stringifyDType(getDType(values))) +
              ", but got " + std::string(stringifyDType(info->dtype)));
    else if (info->shape != shape)
      result = fail(FP8RT_ERROR_FILE,
                    what +
                        ": expected the shape that the manifest gives, "
                        "of " +
                        std::to_string(manifest.slots.size()) + " slots and " +
                        describeKept() + ", but got another");
  });
  if (result.status == FP8RT_OK && header.tensors.size() != count)
    return fail(FP8RT_ERROR_FILE, "expected " + std::to_string(count) +
                                      " tensors, but got " +
                                      std::to_string(header.tensors.size()));
  return result;
}

FileResult StateReader::read() {
  std::string error;
  bool done = true;
  contents.visit(manifest,
                 [&](const char *name, auto &values, std::vector<int64_t>) {
                   const TensorInfo *info = file->getHeader().lookup(name);
                   values.resize(info->getByteSize() / sizeof(values[0]));
                   done = done && file->read(*info, values.data(), error);
                 });
  if (!done)
    return {FP8RT_ERROR_FILE, error};
  if (FileResult result = checkValues(); result.status != FP8RT_OK)
    return result;
  // Files of the first version may have none.
  const Metadata &metadata = file->getHeader().metadata;
  auto expected = metadata.find(kChecksumKey);
  if (expected == metadata.end())
    return {FP8RT_OK, {}};
  std::string got =
      computeChecksum(metadata.at(kManifestKey), manifest, contents);
  if (got != expected->second)
    return fail(FP8RT_ERROR_FILE, "expected the checksum " + expected->second +
                                      " of its contents, but got " + got +
                                      "; the file is damaged");
  return {FP8RT_OK, {}};
}

FileResult StateReader::checkValues() {
  const Recipe &recipe = manifest.recipe;
  // Nothing is known of other recipes.
  size_t numChecked = recipe.delayed ? contents.scale.size() : 0;
  for (size_t slot = 0; slot < numChecked; ++slot) {
    // An update makes 0 of huge amaxes with a large margin, and in flax Inf of
    // tiny ones.
    float scale = contents.scale[slot];
    if (std::signbit(scale) ||
        !(scale <= (recipe.isFlax() ? INFINITY : FLT_MAX)))
      return fail(FP8RT_ERROR_FILE, "slot '" + manifest.slots[slot].name +
                                        "': expected a scale of at least 0, "
                                        "but got " +
                                        std::to_string(scale));
  }
  for (const std::vector<float> *amaxes :
       {&contents.amax, &contents.amaxHistory, &contents.lastAmax})
    for (float amax : *amaxes)
      if (std::signbit(amax))
        return fail(FP8RT_ERROR_FILE,
                    "expected amaxes of at least 0, but got " +
                        std::to_string(amax));
  for (const std::vector<int64_t> *counts :
       {&contents.underflow, &contents.saturated, &contents.recorded,
        &contents.nonFinite, &contents.steps})
    for (int64_t count : *counts)
      if (count < 0)
        return fail(FP8RT_ERROR_FILE,
                    "expected counts of at least 0, but got " +
                        std::to_string(count));
  return {FP8RT_OK, {}};
}

//===----------------------------------------------------------------------===//
// Loading
//===----------------------------------------------------------------------===//

/// What keeps the values of one from having a meaning in the other; empty if
/// nothing does.
static std::string compareRecipes(const Recipe &ours, const Recipe &theirs) {
  if (ours.name != theirs.name)
    return "expected the recipe '" + ours.name + "', but got '" + theirs.name +
           "'";
  auto differ = [](const std::string &key, const std::string &expected,
                   const std::string &got) {
    return "expected " + key + " to be " + expected + ", but got " + got;
  };
  for (const auto &[key, value] : ours.settings) {
    // Histories of another length are adapted, and how the first scales came
    // about changes nothing about later ones.
    if (ours.delayed && (key == "amax_history_len" || key == "initial"))
      continue;
    const RecipeValue *other = theirs.lookup(key);
    if (!other || *other != value)
      return differ(key, stringifyValue(value),
                    other ? stringifyValue(*other) : "none");
  }
  for (const auto &[key, value] : theirs.settings)
    if (!ours.lookup(key))
      return differ(key, "none", stringifyValue(value));
  if (!ours.delayed && ours.numWords != theirs.numWords)
    return differ("words", std::to_string(ours.numWords),
                  std::to_string(theirs.numWords));
  return {};
}

/// Roles may differ: an operand has the same values in both of its products,
/// and which of them quantizes it is the compiler's choice.
static std::string compareSlots(const Slot &ours, const Slot &theirs) {
  auto differ = [&](const char *key, const std::string &expected,
                    const std::string &got) {
    return "slot '" + ours.name + "': expected " + key + " '" + expected +
           "', but got '" + got + "'";
  };
  if (ours.format != theirs.format)
    return differ("format", stringifyFormat(ours.format),
                  stringifyFormat(theirs.format));
  if (ours.operand != theirs.operand)
    return differ("operand", ours.operand, theirs.operand);
  return {};
}

static void takeOver(ScalingState &state, size_t slot,
                     const StateReader &reader, size_t source) {
  const Contents &contents = reader.contents;
  Staging &pending = state.getPending();
  pending.amax[slot] = contents.amax[source];
  pending.underflow[slot] = contents.underflow[source];
  pending.saturated[slot] = contents.saturated[source];
  state.setScale(slot, contents.scale[source]);
  state.lastAmax[slot] = contents.lastAmax[source];
  state.recorded[slot] = contents.recorded[source];
  state.nonFinite[slot] = contents.nonFinite[source];
  if (!state.manifest.recipe.delayed) {
    std::copy_n(contents.words.data() + source * state.getNumWords(),
                state.getNumWords(), state.getWords(slot));
    return;
  }
  size_t theirs = reader.manifest.recipe.getRingLength();
  size_t length = std::min(theirs, state.getRingLength());
  state.writeRing(slot,
                  contents.amaxHistory.data() + (source + 1) * theirs - length,
                  length);
}

FileResult detail::loadState(ScalingState &state, const std::string &path,
                             uint32_t flags, fp8rt_load_report *report) {
  StateReader reader(path);
  if (FileResult result = reader.open(); result.status != FP8RT_OK)
    return result;

  auto mismatch = [&](const std::string &difference) -> FileResult {
    return {FP8RT_ERROR_MISMATCH, path + ": " + difference};
  };
  const Recipe &ours = state.manifest.recipe, &theirs = reader.manifest.recipe;
  if (std::string difference = compareRecipes(ours, theirs);
      !difference.empty())
    return mismatch(difference);
  std::string text;
  int64_t expectedLen = ours.getAmaxHistoryLen();
  int64_t gotLen = theirs.getAmaxHistoryLen();
  if (gotLen != expectedLen)
    text += "amax_history_len: expected " + std::to_string(expectedLen) +
            ", but got " + std::to_string(gotLen) + "\n";

  std::vector<std::pair<size_t, size_t>> matches;
  std::vector<bool> found(state.getNumSlots());
  for (size_t source = 0; source < reader.manifest.slots.size(); ++source) {
    const Slot &slot = reader.manifest.slots[source];
    auto match = state.slotIndex.find(slot.name);
    if (match == state.slotIndex.end()) {
      text += "slot '" + slot.name + "' is extra\n";
      continue;
    }
    std::string difference =
        compareSlots(state.manifest.slots[match->second], slot);
    if (!difference.empty())
      return mismatch(difference);
    matches.push_back({match->second, source});
    found[match->second] = true;
  }
  for (size_t slot = 0; slot < found.size(); ++slot)
    if (!found[slot])
      text += "slot '" + state.manifest.slots[slot].name + "' is missing\n";
  if ((flags & FP8RT_LOAD_STRICT) && !text.empty())
    return mismatch("expected no difference, but " +
                    text.substr(0, text.find('\n')));
  if (matches.empty() && !found.empty())
    return mismatch("expected the state of this program, but no slot has a "
                    "name in common");

  if (FileResult result = reader.read(); result.status != FP8RT_OK)
    return result;
  // From here on nothing fails.
  for (auto [slot, source] : matches)
    takeOver(state, slot, reader, source);
  state.steps = reader.contents.steps[0];
  state.loadReport = std::move(text);
  if (report)
    *report = {
        sizeof(*report),
        static_cast<int64_t>(matches.size()),
        static_cast<int64_t>(found.size() - matches.size()),
        static_cast<int64_t>(reader.manifest.slots.size() - matches.size()),
        gotLen,
        state.loadReport.c_str()};
  return {FP8RT_OK, {}};
}

FileResult detail::readManifest(const std::string &path, Manifest &manifest) {
  StateReader reader(path);
  FileResult result = reader.open();
  manifest = withoutProgram(std::move(reader.manifest));
  return result;
}
