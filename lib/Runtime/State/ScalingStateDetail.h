//===- ScalingStateDetail.h - Inside a scaling state ------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_RUNTIME_STATE_SCALINGSTATEDETAIL_H
#define FP8_LIB_RUNTIME_STATE_SCALINGSTATEDETAIL_H

#include "StatusDetail.h"
#include "fp8/Runtime/DelayedRule.h"
#include "fp8/Runtime/ScalingState.h"

#include <cfenv>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace fp8rt::detail {

/// Those that a scaled tensor may hold.
enum class Format {
#define FP8_CODE_FORMAT(NAME, ...) NAME,
#include "fp8/Formats.def"
};

/// What decides on the values of a state. Only the recipe `delayed` is known
/// here; of others the compiled program has the update, and its options are
/// what the compiler wrote.
struct Recipe {
  std::string name;
  /// Settings of `delayed` in its schema's order, of others in that of names.
  std::vector<std::pair<std::string, RecipeValue>> settings;
  /// 32-bit words that a slot keeps.
  int64_t numWords = 0;
  std::optional<DelayedRule> delayed;

  /// Null if there is no such option.
  const RecipeValue *lookup(std::string_view key) const;
  int64_t getAmaxHistoryLen() const {
    return delayed ? delayed->amaxHistoryLen : 0;
  }
  /// Past amaxes of a slot.
  size_t getRingLength() const {
    return delayed ? static_cast<size_t>(delayed->getRingLength()) : 0;
  }
  bool isFlax() const {
    return delayed && delayed->compat == DelayedCompat::Flax;
  }
};

struct Slot {
  std::string name, role, operand;
  Format format = Format::E4M3;
  /// Bytes of the cache of the quantized tensor.
  int64_t cache = 0;
};

struct Manifest {
  Recipe recipe;
  std::vector<Slot> slots;
  /// The slots that calls of a function record; of one that is not there all.
  std::map<std::string, std::vector<int64_t>, std::less<>> uses;
};

const char *stringifyFormat(Format format);
/// A setting's value, as in the text of a recipe.
std::string stringifyValue(const RecipeValue &value);
/// As on a command line: `delayed,amax_history_len=16,...`.
std::string printRecipe(const Recipe &recipe);

/// Whether a manifest may have it: UTF-8 and not empty.
bool isSlotName(const std::string &name);
bool parseManifest(std::string_view text, Manifest &manifest,
                   std::string &error);
/// With every key; equal manifests give equal texts.
std::string printManifest(const Manifest &manifest);

/// An amax is kept as the bits of its magnitude: integers order them as the
/// values are ordered, NaN above all, and integer maxima vectorize.
using AmaxBits = int32_t;
inline constexpr AmaxBits kInfBits = 0x7f800000;

inline AmaxBits getAmaxBits(float amax) {
  uint32_t bits;
  std::memcpy(&bits, &amax, sizeof(bits));
  return static_cast<AmaxBits>(bits & 0x7fffffff);
}

inline float makeAmax(AmaxBits bits) {
  float amax;
  std::memcpy(&amax, &bits, sizeof(amax));
  return amax;
}

/// IEEE arithmetic as a program starts with it: round to nearest, and no
/// flush-to-zero, which would turn scale_inv of FLT_MAX into 0.
class DefaultFloatEnvironment {
public:
  DefaultFloatEnvironment() {
    std::fegetenv(&saved);
    std::fesetenv(FE_DFL_ENV);
  }
  ~DefaultFloatEnvironment() { std::fesetenv(&saved); }

private:
  std::fenv_t saved;
};

/// What compiled code writes during a step.
struct Staging {
  explicit Staging(size_t numSlots)
      : amax(numSlots), underflow(numSlots), saturated(numSlots) {}

  std::vector<float> amax;
  std::vector<int64_t> underflow, saturated;
};

/// Where compiled code keeps quantized tensors from one micro-batch to the
/// next.
class Caches {
public:
  explicit Caches(const std::vector<Slot> &slots);
  Caches(const Caches &other) : buffers(other.buffers) { setPointers(); }
  Caches &operator=(const Caches &) = delete;

  /// One for each slot; null without a cache.
  void *const *getPointers() const { return pointers.data(); }

private:
  void setPointers();

  std::vector<std::vector<uint8_t>> buffers;
  std::vector<void *> pointers;
};

class ScalingState {
public:
  explicit ScalingState(Manifest manifest);

  size_t getNumSlots() const { return manifest.slots.size(); }
  size_t getNumWords() const {
    return static_cast<size_t>(manifest.recipe.numWords);
  }
  size_t getRingLength() const { return manifest.recipe.getRingLength(); }

  /// Freezing puts aside what waits for an update.
  const Staging &getPending() const { return suspended ? *suspended : staging; }
  Staging &getPending() { return suspended ? *suspended : staging; }

  /// Only of the recipe `delayed`, or frozen.
  void update();
  void reset();
  void resetSlot(size_t slot);
  /// `name` is valid and no slot's.
  void renameSlot(size_t slot, const std::string &name);
  void freeze();
  void unfreeze();
  void clearStaging();

  /// What a slot keeps for its recipe.
  AmaxBits *getWords(size_t slot) {
    return words.data() + slot * getNumWords();
  }
  const AmaxBits *getWords(size_t slot) const {
    return words.data() + slot * getNumWords();
  }

  fp8rt_state_rows getRows();

  /// The `length` newest past amaxes of a slot, oldest first.
  void readRing(size_t slot, float *amaxes, size_t length) const;
  /// Makes `amaxes`, oldest first, the newest of a slot, and the others 0.
  void writeRing(size_t slot, const float *amaxes, size_t length);
  /// The same in the order of the ABI, `stride` elements apart.
  void readHistory(size_t slot, float *history, size_t stride) const;
  void writeHistory(size_t slot, const float *history);

  /// As a caller does, so that it is not looked for.
  void setScale(size_t slot, float value);
  /// As its own tensor's, in a first step.
  void setInitialScale(size_t slot, float value);

  /// At an update: slots that have got a scale have one from here on.
  void endFirstCalls();

  /// Whether calls give the slot a scale of their own: no update has found one,
  /// nor did a caller.
  bool isEmpty(size_t slot) const;
  /// The scale of an empty slot whose tensor has this amax.
  float getInitialScale(size_t slot, float amax) const;
  /// Calls `visitor(slot)` for all slots that calls of a function record.
  template <typename Visitor>
  void visitUses(const char *function, Visitor &&visitor) const {
    auto found = manifest.uses.find(std::string_view(function));
    if (found != manifest.uses.end())
      for (int64_t slot : found->second)
        visitor(static_cast<size_t>(slot));
    else
      for (size_t slot = 0; slot < getNumSlots(); ++slot)
        visitor(slot);
  }
  /// Whether a call of the function may find an empty slot, as far as the host
  /// knows, and whether a scale follows from its tensor then.
  bool mayNeedInitialScale(const char *function) const;

  Manifest manifest;
  std::string manifestText, recipeText;
  std::unordered_map<std::string, size_t> slotIndex;

  Staging staging;
  std::optional<Staging> suspended;
  std::vector<float> scale, scaleInv;
  /// The largest value of each slot's format.
  std::vector<float> maxFinite;
  Caches caches;
  std::vector<float> lastAmax;
  std::vector<int64_t> recorded, nonFinite;
  /// Slots that are known not to be empty, which they do not become again
  /// unless the host makes them so. A device need not be asked for these.
  std::vector<bool> isFilled;
  /// Calls since the last update that have given a slot a scale.
  std::vector<int32_t> firstCalls;
  int64_t steps = 0;
  std::string loadReport;

private:
  template <DelayedCompat compat>
  void updateSlots();

  std::vector<AmaxBits> words;
};

/// How reading or writing a file ended; `message` is empty with FP8RT_OK.
struct FileResult {
  fp8rt_status status;
  std::string message;
};
FileResult saveState(const ScalingState &state, const std::string &path);
FileResult loadState(ScalingState &state, const std::string &path,
                     uint32_t flags, fp8rt_load_report *report);
FileResult readManifest(const std::string &path, Manifest &manifest);

} // namespace fp8rt::detail

#endif // FP8_LIB_RUNTIME_STATE_SCALINGSTATEDETAIL_H
