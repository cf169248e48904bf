//===- ScalingStateUpdate.cpp - The step of delayed scaling ---------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The rule of fp8/Runtime/DelayedRule.h, computed with numbers.
//
//===----------------------------------------------------------------------===//

#include "ScalingStateDetail.h"

#include <algorithm>

using namespace fp8rt;
using namespace fp8rt::detail;

namespace {

/// The words of a slot, and arithmetic as the processor has it.
struct HostArithmetic {
  using Bits = AmaxBits;
  using Real = float;
  using Flag = bool;

  AmaxBits *words;

  static Bits bits(int32_t value) { return value; }
  static Real real(float value) { return value; }
  static Real toReal(Bits x) { return makeAmax(x); }
  static Bits toBits(Real x) {
    Bits bits;
    std::memcpy(&bits, &x, sizeof(bits));
    return bits;
  }
  static bool less(Bits x, Bits y) { return x < y; }
  static bool equal(Bits x, Bits y) { return x == y; }
  static bool both(bool x, bool y) { return x && y; }
  template <typename T>
  static T select(bool condition, T x, T y) {
    return condition ? x : y;
  }
  static Bits max(Bits x, Bits y) { return std::max(x, y); }
  static Bits add(Bits x, Bits y) { return x + y; }
  static Bits mask(Bits x, Bits y) { return x & y; }
  static Real multiply(Real x, Real y) { return x * y; }
  static Real divide(Real x, Real y) { return x / y; }

  Bits load(Bits position) const { return words[position]; }
  void store(Bits position, Bits word) const { words[position] = word; }

  template <typename Then>
  static Bits choose(bool condition, Then &&then, Bits otherwise) {
    return condition ? then() : otherwise;
  }
  template <typename Get>
  static Bits maxOver(int32_t first, int32_t count, Get &&get) {
    Bits max = 0;
    for (int32_t i = first; i < first + count; ++i)
      max = std::max(max, get(i));
    return max;
  }
};

/// A rule whose system is known when this is compiled, so that its loops have
/// no cases.
template <DelayedCompat system>
struct RuleOf : DelayedRule {
  explicit RuleOf(const DelayedRule &rule) : DelayedRule(rule) {}
  static constexpr DelayedCompat compat = system;
};

} // namespace

template <DelayedCompat compat>
void ScalingState::updateSlots() {
  RuleOf<compat> rule(*manifest.recipe.delayed);
  for (size_t slot = 0, count = getNumSlots(); slot < count; ++slot) {
    AmaxBits present = getAmaxBits(staging.amax[slot]);
    staging.amax[slot] = 0;
    lastAmax[slot] = makeAmax(present);
    recorded[slot] += present != 0;
    nonFinite[slot] += present >= kInfBits;
    HostArithmetic arithmetic{getWords(slot)};
    scale[slot] =
        DelayedUpdate<HostArithmetic, RuleOf<compat>>(arithmetic, rule)
            .run(present, maxFinite[slot], scale[slot]);
    scaleInv[slot] = 1.0f / scale[slot];
  }
}

void ScalingState::update() {
  if (suspended) {
    clearStaging();
    return;
  }
  DefaultFloatEnvironment environment;
  switch (manifest.recipe.delayed->compat) {
  case DelayedCompat::TEFused:
    updateSlots<DelayedCompat::TEFused>();
    break;
  case DelayedCompat::TEUnfused:
    updateSlots<DelayedCompat::TEUnfused>();
    break;
  case DelayedCompat::Flax:
    updateSlots<DelayedCompat::Flax>();
    break;
  }
  ++steps;
  endFirstCalls();
}

void ScalingState::setInitialScale(size_t slot, float value) {
  DefaultFloatEnvironment environment;
  scale[slot] = value;
  // Volatile, or the division could be done before the environment is set.
  const volatile float one = 1.0f;
  scaleInv[slot] = one / value;
}

void ScalingState::setScale(size_t slot, float value) {
  setInitialScale(slot, value);
  firstCalls[slot] = 0;
  isFilled[slot] = false;
}

void ScalingState::endFirstCalls() {
  for (size_t slot = 0; slot < getNumSlots(); ++slot)
    if (firstCalls[slot] != 0) {
      isFilled[slot] = true;
      firstCalls[slot] = 0;
    }
}

bool ScalingState::isEmpty(size_t slot) const {
  AmaxBits past = getRingLength() ? getWords(slot)[kRingMax] : 0;
  return (scale[slot] == 1.0f || firstCalls[slot] != 0) &&
         recorded[slot] == nonFinite[slot] && (past == 0 || past >= kInfBits);
}

float ScalingState::getInitialScale(size_t slot, float amax) const {
  DefaultFloatEnvironment environment;
  HostArithmetic arithmetic{nullptr};
  DelayedUpdate<HostArithmetic, DelayedRule> update(arithmetic,
                                                    *manifest.recipe.delayed);
  return update.getScale(update.getKey(getAmaxBits(amax)), maxFinite[slot],
                         /*scale=*/1.0f);
}

bool ScalingState::mayNeedInitialScale(const char *function) const {
  const std::optional<DelayedRule> &rule = manifest.recipe.delayed;
  if (!rule || !rule->startsWithOwnAmax())
    return false;
  bool isAnyUnknown = false;
  visitUses(function, [&](size_t slot) { isAnyUnknown |= !isFilled[slot]; });
  return isAnyUnknown;
}

void ScalingState::readRing(size_t slot, float *amaxes, size_t length) const {
  size_t ringLength = getRingLength();
  if (ringLength == 0)
    return;
  const AmaxBits *slotWords = getWords(slot);
  size_t position = slotWords[kOldestPosition] + (ringLength - length);
  for (size_t i = 0; i < length; ++i, ++position)
    amaxes[i] = makeAmax(
        slotWords[kRing +
                  (position < ringLength ? position : position - ringLength)]);
}

void ScalingState::writeRing(size_t slot, const float *amaxes, size_t length) {
  size_t ringLength = getRingLength();
  if (ringLength == 0)
    return;
  AmaxBits *slotWords = getWords(slot), *ring = slotWords + kRing;
  std::fill(ring, ring + (ringLength - length), 0);
  std::transform(amaxes, amaxes + length, ring + (ringLength - length),
                 getAmaxBits);
  HostArithmetic arithmetic{slotWords};
  DelayedUpdate<HostArithmetic, DelayedRule> update(arithmetic,
                                                    *manifest.recipe.delayed);
  isFilled[slot] = false;
  slotWords[kOldestPosition] = 0;
  slotWords[kRingMax] = HostArithmetic::maxOver(
      kRing, static_cast<int32_t>(ringLength),
      [&](AmaxBits i) { return update.getKey(slotWords[i]); });
}
