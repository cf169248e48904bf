//===- Warpwide.cpp - Instructions in which lanes meet --------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Exec/Lanes.h"

#include <algorithm>

using namespace fp8emu;

/// The lanes that take part, if all of them that live are here; else 0, and the
/// group waits for the others.
static Mask getMembers(Warp &warp, const Op &op, Mask mask, uint32_t row) {
  auto members = getUniform<uint32_t>(warp, op, mask, row, "the member mask");
  if (mask & ~members)
    warp.fault(op, mask & ~members, kLaunchFailed,
               "expected the lane to be one of the member mask, " +
                   toHex(members));
  return warp.hasAll(members, mask) ? mask : 0;
}

//===----------------------------------------------------------------------===//
// Shuffles
//===----------------------------------------------------------------------===//

enum class Shuffle : uint32_t { Up, Down, Bfly, Idx };

static Step shuffle(Warp &warp, const Op &op, Mask mask) {
  if (!getMembers(warp, op, mask, op.s[3]))
    return Step::Wait;
  const auto *a = warp.row<uint32_t>(op.s[0]);
  const auto *b = warp.row<uint32_t>(op.s[1]);
  const auto *c = warp.row<uint32_t>(op.s[2]);
  uint32_t results[kLanes];
  Mask inRange = 0;
  for (uint32_t lane = 0; lane < kLanes; ++lane) {
    uint32_t bound = b[lane] & 31, clamp = c[lane] & 31;
    uint32_t segments = c[lane] >> 8 & 31;
    uint32_t high = (lane & segments) | (clamp & ~segments);
    uint32_t low = lane & segments, from = 0;
    bool valid = false;
    switch (static_cast<Shuffle>(op.flags)) {
    case Shuffle::Up:
      from = lane - bound;
      valid = static_cast<int32_t>(from) >= static_cast<int32_t>(high);
      break;
    case Shuffle::Down:
      from = lane + bound;
      valid = from <= high;
      break;
    case Shuffle::Bfly:
      from = lane ^ bound;
      valid = from <= high;
      break;
    case Shuffle::Idx:
      from = low | (bound & ~segments);
      valid = from <= high;
      break;
    }
    if (!valid)
      from = lane;
    inRange |= Mask{valid} << lane;
    if ((mask >> lane & 1) && !(mask >> from & 1))
      warp.fault(op, Mask{1} << lane, kLaunchFailed,
                 "expected the value of a lane that takes part, but lane " +
                     std::to_string(from) + " does not");
    results[lane] = a[from & 31];
  }
  assign(warp.row<uint32_t>(op.d), results, mask);
  if (op.count == 2) {
    Mask &p = warp.predicate(op.rows);
    p = (p & ~mask) | (inRange & mask);
  }
  return Step::Next;
}

static void decodeShuffle(Decoder &decoder, Modifiers &modifiers, Op &op) {
  modifiers.take("sync");
  auto how = modifiers.takeOneOf({"up", "down", "bfly", "idx"});
  if (!how || !modifiers.take("b32"))
    decoder.fail("expected a mode and .b32");
  decoder.expectOperands(5);
  const Operand &d = decoder.operand(0);
  if (d.kind == Operand::Pair) {
    op.d = decoder.destination(d.elements[0], 32);
    op.rows = decoder.destination(d.elements[1], 1);
    op.count = 2;
  } else {
    op.d = decoder.destination(d, 32);
  }
  for (size_t i = 0; i < 4; ++i)
    op.s[i] = decoder.sourceBits(decoder.operand(i + 1), 32);
  op.flags = *how;
  op.handler = shuffle;
}

//===----------------------------------------------------------------------===//
// Votes, reductions
//===----------------------------------------------------------------------===//

enum class Reduce : uint32_t { Add, Min, Max, And, Or, Xor };

template <class T>
static Step reduce(Warp &warp, const Op &op, Mask mask) {
  if (!getMembers(warp, op, mask, op.s[1]))
    return Step::Wait;
  const T *a = warp.row<T>(op.s[0]);
  T result = a[__builtin_ctz(mask)];
  for (Mask rest = mask & (mask - 1); rest; rest &= rest - 1) {
    T x = a[__builtin_ctz(rest)];
    switch (static_cast<Reduce>(op.flags)) {
    case Reduce::Add:
      result = static_cast<T>(static_cast<uint32_t>(result) +
                              static_cast<uint32_t>(x));
      break;
    case Reduce::Min:
      result = std::min(result, x);
      break;
    case Reduce::Max:
      result = std::max(result, x);
      break;
    case Reduce::And:
      result &= x;
      break;
    case Reduce::Or:
      result |= x;
      break;
    case Reduce::Xor:
      result ^= x;
      break;
    }
  }
  T results[kLanes];
  std::fill_n(results, kLanes, result);
  assign(warp.row<T>(op.d), results, mask);
  return Step::Next;
}

static void decodeRedux(Decoder &decoder, Modifiers &modifiers, Op &op) {
  modifiers.take("sync");
  auto what = modifiers.takeOneOf({"add", "min", "max", "and", "or", "xor"});
  std::optional<Type> type = modifiers.takeType();
  if (!what || !type || type->bits != 32 || !type->isInteger())
    decoder.fail("expected an operation and a type of 32 bits");
  decoder.expectOperands(3);
  op.d = decoder.destination(decoder.operand(0), 32);
  op.s[0] = decoder.source(1, *type);
  op.s[1] = decoder.sourceBits(decoder.operand(2), 32);
  op.flags = *what;
  op.handler = type->kind == Type::Signed ? reduce<int32_t> : reduce<uint32_t>;
}

enum class Vote : uint32_t { All, Any, Uni, Ballot };

static Step vote(Warp &warp, const Op &op, Mask mask) {
  if (!getMembers(warp, op, mask, op.s[1]))
    return Step::Wait;
  Mask p = (warp.predicate(op.s[0]) ^ (op.count ? ~Mask{0} : 0)) & mask;
  auto how = static_cast<Vote>(op.flags);
  if (how == Vote::Ballot) {
    uint32_t results[kLanes];
    std::fill_n(results, kLanes, p);
    assign(warp.row<uint32_t>(op.d), results, mask);
    return Step::Next;
  }
  bool result = how == Vote::All   ? p == mask
                : how == Vote::Any ? p != 0
                                   : p == 0 || p == mask;
  Mask &d = warp.predicate(op.d);
  d = (d & ~mask) | (result ? mask : 0);
  return Step::Next;
}

static void decodeVote(Decoder &decoder, Modifiers &modifiers, Op &op) {
  modifiers.take("sync");
  auto how = modifiers.takeOneOf({"all", "any", "uni", "ballot"});
  std::optional<Type> type = modifiers.takeType();
  if (!how || !type || type->bits != (*how == 3 ? 32 : 1))
    decoder.fail("expected a mode and a type");
  decoder.expectOperands(3);
  op.d = decoder.destination(decoder.operand(0), *how == 3 ? 32 : 1);
  bool negated;
  op.s[0] = decoder.predicate(decoder.operand(1), negated);
  op.s[1] = decoder.sourceBits(decoder.operand(2), 32);
  op.count = negated;
  op.flags = *how;
  op.handler = vote;
}

/// match.any: lanes with the same value.
template <class T>
static Step match(Warp &warp, const Op &op, Mask mask) {
  if (!getMembers(warp, op, mask, op.s[1]))
    return Step::Wait;
  const T *a = warp.row<T>(op.s[0]);
  uint32_t results[kLanes] = {};
  for (unsigned i = 0; i < kLanes; ++i)
    for (unsigned j = 0; j < kLanes; ++j)
      results[i] |= Mask{(mask >> j & 1) && a[i] == a[j]} << j;
  assign(warp.row<uint32_t>(op.d), results, mask);
  return Step::Next;
}

static void decodeMatch(Decoder &decoder, Modifiers &modifiers, Op &op) {
  if (!modifiers.take("any"))
    decoder.fail("expected .any");
  modifiers.take("sync");
  std::optional<Type> type = modifiers.takeType();
  decoder.expectOperands(3);
  if (!type)
    decoder.fail("expected a type");
  op.d = decoder.destination(decoder.operand(0), 32);
  op.s[0] = decoder.source(1, *type);
  op.s[1] = decoder.sourceBits(decoder.operand(2), 32);
  op.handler = type->bits == 32 ? match<uint32_t> : match<uint64_t>;
}

/// Any lane of the mask, but always the same (PTX ISA, "elect.sync"): the seed
/// draws it, so that nobody relies on the first. Chips take the first.
static Step elect(Warp &warp, const Op &op, Mask mask) {
  Mask members = getMembers(warp, op, mask, op.s[0]);
  if (!members)
    return Step::Wait;
  const Settings &settings = warp.cta.cluster.grid.settings;
  auto skip = static_cast<unsigned>((settings.seed * 0x9e3779b97f4a7c15 +
                                     members * 0xd1342543de82ef95) >>
                                    40) %
              static_cast<unsigned>(__builtin_popcount(members));
  if (!settings.strict)
    skip = 0;
  for (; skip > 0; --skip)
    members &= members - 1;
  auto leader = static_cast<uint32_t>(__builtin_ctz(members));
  uint32_t results[kLanes];
  std::fill_n(results, kLanes, leader);
  if (op.count)
    assign(warp.row<uint32_t>(op.d), results, mask);
  Mask &p = warp.predicate(op.rows);
  p = (p & ~mask) | (Mask{1} << leader);
  return Step::Next;
}

static void decodeElect(Decoder &decoder, Modifiers &modifiers, Op &op) {
  if (!modifiers.take("sync"))
    decoder.fail("expected .sync");
  decoder.expectOperands(2);
  const Operand &d = decoder.operand(0);
  if (d.kind != Operand::Pair)
    decoder.fail("expected d|p");
  op.count = d.elements[0].kind == Operand::Reg;
  if (op.count)
    op.d = decoder.destination(d.elements[0], 32);
  op.rows = decoder.destination(d.elements[1], 1);
  op.s[0] = decoder.sourceBits(decoder.operand(1), 32);
  op.handler = elect;
}

static Step activeMask(Warp &warp, const Op &op, Mask mask) {
  uint32_t results[kLanes];
  std::fill_n(results, kLanes, mask);
  assign(warp.row<uint32_t>(op.d), results, mask);
  return Step::Next;
}

static void decodeActiveMask(Decoder &decoder, Modifiers &modifiers, Op &op) {
  modifiers.take("b32");
  decoder.expectOperands(1);
  op.d = decoder.destination(decoder.operand(0), 32);
  op.handler = activeMask;
}

void fp8emu::addWarpwide(DecodeTable &table) {
  table["shfl"] = decodeShuffle;
  table["redux"] = decodeRedux;
  table["vote"] = decodeVote;
  table["match"] = decodeMatch;
  table["elect"] = decodeElect;
  table["activemask"] = decodeActiveMask;
}
