//===- ScalingStateUpdate.cpp - The step of delayed scaling -----*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The rules of Transformer Engine and Flax, bit for bit:
// docs/Recipes/Delayed.md has them in words.
//
//===----------------------------------------------------------------------===//

#include "ScalingStateDetail.h"

#include <algorithm>
#include <cfenv>
#include <cfloat>
#include <cmath>
#include <utility>

using namespace fp8rt;
using namespace fp8rt::detail;

namespace {
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
} // namespace

/// What an amax counts in a maximum. te_fused takes C's fmax, which passes over
/// NaN; the others take a maximum in which NaN wins.
template <Compat compat>
static AmaxBits getKey(AmaxBits amax) {
  return compat == Compat::TEFused && amax > kInfBits ? 0 : amax;
}

template <Compat compat>
static AmaxBits getMax(const AmaxBits *amaxes, size_t length) {
  AmaxBits max = 0;
  for (size_t i = 0; i < length; ++i)
    max = std::max(max, getKey<compat>(amaxes[i]));
  return max;
}

static AmaxBits getMax(Compat compat, const AmaxBits *amaxes, size_t length) {
  return compat == Compat::TEFused ? getMax<Compat::TEFused>(amaxes, length)
                                   : getMax<Compat::TEUnfused>(amaxes, length);
}

/// Puts the newest amax into a ring in the place of the oldest.
template <Compat compat>
void ScalingState::push(size_t slot, AmaxBits amax) {
  size_t length = getRingLength();
  if (length == 0)
    return;
  AmaxBits *ring = getRing(slot);
  AmaxBits leaving = std::exchange(ring[oldest[slot]], amax);
  oldest[slot] = oldest[slot] + 1 == length ? 0 : oldest[slot] + 1;
  AmaxBits key = getKey<compat>(amax);
  if (key >= ringMax[slot])
    ringMax[slot] = key;
  else if (getKey<compat>(leaving) == ringMax[slot])
    ringMax[slot] = getMax<compat>(ring, length);
}

/// The largest power of two that is not above `value`.
static float roundDownToPow2(float value) {
  if (value == 0 || std::isinf(value))
    return value;
  int exponent;
  std::frexp(value, &exponent);
  return std::ldexp(1.0f, exponent - 1);
}

template <Compat compat>
static float computeScale(const Recipe &recipe, float fp8Max, float power,
                          float amax) {
  float scale =
      compat == Compat::TEFused ? fp8Max / power / amax : fp8Max / amax / power;
  if (compat != Compat::Flax && std::isinf(scale))
    scale = FLT_MAX;
  return recipe.pow2 ? roundDownToPow2(scale) : scale;
}

template <Compat compat>
void ScalingState::updateSlots() {
  const Recipe &recipe = manifest.recipe;
  float power = std::ldexp(1.0f, static_cast<int>(recipe.margin));
  for (size_t slot = 0, count = getNumSlots(); slot < count; ++slot) {
    AmaxBits present = getAmaxBits(staging.amax[slot]);
    staging.amax[slot] = 0;
    lastAmax[slot] = makeAmax(present);
    recorded[slot] += present != 0;
    nonFinite[slot] += present >= kInfBits;

    // TE's window has the amax that this update drops; Flax's has not. Both
    // have amax_history_len values.
    AmaxBits window = std::max(ringMax[slot], getKey<compat>(present));
    if (compat != Compat::TEFused || present != 0)
      push<compat>(slot, present);
    else
      window = 0;
    if (compat == Compat::Flax)
      window = ringMax[slot];
    if (recipe.algo == Algo::MostRecent)
      window = present;

    // Without a usable amax the scale is kept. Flax stores its inverse only.
    if (window > 0 && window < kInfBits) {
      float fp8Max =
          manifest.slots[slot].format == Format::E4M3 ? 448.0f : 57344.0f;
      scale[slot] =
          computeScale<compat>(recipe, fp8Max, power, makeAmax(window));
      scaleInv[slot] = 1.0f / scale[slot];
    } else if (compat == Compat::Flax) {
      scale[slot] = 1.0f / scaleInv[slot];
      scaleInv[slot] = 1.0f / scale[slot];
    }
  }
}

void ScalingState::update() {
  if (suspended) {
    clearStaging();
    return;
  }
  DefaultFloatEnvironment environment;
  switch (manifest.recipe.compat) {
  case Compat::TEFused:
    updateSlots<Compat::TEFused>();
    break;
  case Compat::TEUnfused:
    updateSlots<Compat::TEUnfused>();
    break;
  case Compat::Flax:
    updateSlots<Compat::Flax>();
    break;
  }
  ++steps;
}

void ScalingState::setScale(size_t slot, float value) {
  DefaultFloatEnvironment environment;
  scale[slot] = value;
  // Volatile, or the division could be done before the environment is set.
  const volatile float one = 1.0f;
  scaleInv[slot] = one / value;
}

void ScalingState::readRing(size_t slot, float *amaxes, size_t length) const {
  size_t ringLength = getRingLength();
  const AmaxBits *ring = getRing(slot);
  size_t position = oldest[slot] + (ringLength - length);
  for (size_t i = 0; i < length; ++i, ++position)
    amaxes[i] = makeAmax(
        ring[position < ringLength ? position : position - ringLength]);
}

void ScalingState::writeRing(size_t slot, const float *amaxes, size_t length) {
  size_t ringLength = getRingLength();
  AmaxBits *ring = getRing(slot);
  std::fill(ring, ring + (ringLength - length), 0);
  std::transform(amaxes, amaxes + length, ring + (ringLength - length),
                 getAmaxBits);
  oldest[slot] = 0;
  ringMax[slot] = getMax(manifest.recipe.compat, ring, ringLength);
}
