//===- DelayedRule.h - How a step of delayed scaling ends -------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The rules of Transformer Engine and Flax, bit for bit, which
// docs/Recipes/Delayed.md has in words. They are written here once: the host's
// states compute them with numbers, and the compiler makes of the same text the
// arithmetic of a kernel.
//
// A slot keeps its past amaxes in a ring: an update replaces the oldest,
// whatever the length, and slots turn on their own, as te_fused asks for when
// an amax is 0. The maximum of the ring is kept beside it, so that the ring is
// only read again when its maximum leaves.
//
// Not part of libfp8rt's C interface.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_RUNTIME_DELAYEDRULE_H
#define FP8_RUNTIME_DELAYEDRULE_H

#include "fp8/Runtime/RecipeSchema.h"

#include <cmath>
#include <limits>

namespace fp8rt {

/// The enums, kDelayedKeys and kDelayedSchema.
#include "fp8/Runtime/DelayedKeys.inc"

/// Where a slot has what, in its 32-bit words. Amaxes are bits of magnitudes:
/// integers order them as the values are ordered, NaN above all.
enum DelayedWord { kOldestPosition, kRingMax, kRing };

struct DelayedRule {
  int64_t amaxHistoryLen;
  AmaxComputeAlgo algo;
  int64_t margin;
  DelayedCompat compat;
  bool pow2;
  InitialScale initial = InitialScale::One;

  /// TE counts the amax that waits for the update as part of the history.
  int64_t getRingLength() const {
    return amaxHistoryLen - (compat == DelayedCompat::Flax ? 0 : 1);
  }
  int64_t getNumWords() const {
    return getRingLength() == 0 ? 0 : kRing + getRingLength();
  }
  /// Whether a tensor without past amaxes is scaled by its own. The systems
  /// that `compat` names begin with 1, hence only the default does.
  bool startsWithOwnAmax() const {
    return initial == InitialScale::Current ||
           (initial == InitialScale::Auto && compat == DelayedCompat::TEFused);
  }
};

/// A key whose value does not go with those of others, and what would.
struct KeyConflict {
  const char *key, *expected;
};

inline std::optional<KeyConflict> findConflict(const DelayedRule &rule) {
  if (rule.compat != DelayedCompat::Flax)
    return std::nullopt;
  if (rule.margin != 0)
    return KeyConflict{"margin", "0 with compat flax, which knows no other"};
  if (rule.algo != AmaxComputeAlgo::Max)
    return KeyConflict{"amax_compute_algo",
                       "max with compat flax, which knows no other"};
  return std::nullopt;
}

/// The update of one slot. `Arithmetic` has the types Bits (32-bit integers
/// that are not negative, but for `select`), Real (f32) and Flag, IEEE
/// operations on them, and the words of the slot; `Rule` has the members of a
/// DelayedRule.
template <typename Arithmetic, typename Rule>
class DelayedUpdate {
public:
  using Bits = typename Arithmetic::Bits;
  using Real = typename Arithmetic::Real;
  using Flag = typename Arithmetic::Flag;

  DelayedUpdate(Arithmetic &a, const Rule &rule) : a(a), rule(rule) {}

  /// What an amax counts in a maximum. te_fused takes C's fmax, which passes
  /// over NaN; the others take a maximum in which NaN wins.
  Bits getKey(Bits amax) {
    if (rule.compat != DelayedCompat::TEFused)
      return amax;
    return a.select(a.less(a.bits(kInf), amax), a.bits(0), amax);
  }

  /// The amax that decides on the scale; 0 for none. `past` is the largest of
  /// the ring: in TE before `present` came in, since TE's window has the amax
  /// that this update drops, in Flax after.
  Bits getWindow(Bits past, Bits present) {
    if (rule.algo == AmaxComputeAlgo::MostRecent)
      return present;
    if (rule.compat == DelayedCompat::Flax)
      return past;
    Bits window = a.max(past, getKey(present));
    if (rule.compat == DelayedCompat::TEFused)
      window = a.select(isUnused(present), a.bits(0), window);
    return window;
  }

  /// The scale of the next step, `scale` being that of this one.
  Real getScale(Bits window, Real fp8Max, Real scale) {
    Real next = limit(divide(fp8Max, a.toReal(window)));
    if (rule.pow2)
      next = floorToPow2(next);
    // Flax stores the inverse only, so that a scale that is kept goes through
    // it.
    Real kept = scale;
    if (rule.compat == DelayedCompat::Flax)
      kept = a.divide(a.real(1), a.divide(a.real(1), scale));
    Flag isUsable =
        a.both(a.less(a.bits(0), window), a.less(window, a.bits(kInf)));
    return a.select(isUsable, next, kept);
  }

  /// The whole: `present` enters the ring, and the scale of the next step comes
  /// out.
  Real run(Bits present, Real fp8Max, Real scale) {
    Bits past = a.bits(0);
    if (rule.getRingLength() != 0) {
      past = a.load(a.bits(kRingMax));
      Bits updated = push(present, past);
      if (rule.compat == DelayedCompat::Flax)
        past = updated;
    }
    return getScale(getWindow(past, present), fp8Max, scale);
  }

private:
  static constexpr int32_t kInf = 0x7f800000;

  /// te_fused does nothing at all with a tensor that was not used.
  Flag isUnused(Bits present) { return a.equal(present, a.bits(0)); }

  /// Puts the newest amax into the ring in the place of the oldest; returns the
  /// largest that is in it now.
  Bits push(Bits present, Bits ringMax) {
    auto length = static_cast<int32_t>(rule.getRingLength());
    Bits oldest = a.load(a.bits(kOldestPosition));
    Bits place = a.add(oldest, a.bits(kRing));
    Bits leaving = a.load(place);
    Bits key = getKey(present);
    Bits next = a.add(oldest, a.bits(1));
    next = a.select(a.equal(next, a.bits(length)), a.bits(0), next);
    Bits entering = present;
    Flag mustSearch =
        a.both(a.less(key, ringMax), a.equal(getKey(leaving), ringMax));
    if (rule.compat == DelayedCompat::TEFused) {
      Flag stays = isUnused(present);
      entering = a.select(stays, leaving, present);
      next = a.select(stays, oldest, next);
      mustSearch = a.both(mustSearch, a.less(a.bits(0), present));
    }
    a.store(place, entering);
    a.store(a.bits(kOldestPosition), next);
    Bits updated = a.choose(
        mustSearch,
        [&] {
          return a.maxOver(kRing, length,
                           [&](Bits index) { return getKey(a.load(index)); });
        },
        a.max(key, ringMax));
    a.store(a.bits(kRingMax), updated);
    return updated;
  }

  /// TE fused divides FP8_MAX by 2^margin first. TE unfused is PyTorch, where a
  /// number divided by a tensor is the number times the tensor's reciprocal:
  /// two roundings.
  Real divide(Real fp8Max, Real amax) {
    if (rule.compat == DelayedCompat::Flax)
      return a.divide(fp8Max, amax);
    Real power = a.real(std::ldexp(1.0f, static_cast<int>(rule.margin)));
    if (rule.compat == DelayedCompat::TEFused)
      return a.divide(a.divide(fp8Max, power), amax);
    return a.divide(a.multiply(a.divide(a.real(1), amax), fp8Max), power);
  }

  /// Flax has no rule for a quotient that overflows.
  Real limit(Real scale) {
    if (rule.compat == DelayedCompat::Flax)
      return scale;
    return a.select(a.equal(a.toBits(scale), a.bits(kInf)),
                    a.real(std::numeric_limits<float>::max()), scale);
  }

  /// The largest power of two that is not above `x`, subnormal ones included.
  Real floorToPow2(Real x) {
    Flag isSubnormal = a.less(a.toBits(x), a.bits(0x00800000));
    Real factor = a.select(isSubnormal, a.real(0x1p64f), a.real(1));
    Real power =
        a.toReal(a.mask(a.toBits(a.multiply(x, factor)), a.bits(kInf)));
    return a.divide(power, factor);
  }

  Arithmetic &a;
  const Rule &rule;
};

} // namespace fp8rt

#endif // FP8_RUNTIME_DELAYEDRULE_H
