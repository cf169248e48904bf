//===- Logic.cpp - Bits, moves and selections -----------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Exec/Lanes.h"

#include <algorithm>

using namespace fp8emu;

namespace {
struct And {
  template <class T>
  T operator()(T a, T b) const {
    return a & b;
  }
};
struct Or {
  template <class T>
  T operator()(T a, T b) const {
    return a | b;
  }
};
struct Xor {
  template <class T>
  T operator()(T a, T b) const {
    return a ^ b;
  }
};
struct Not {
  template <class T>
  T operator()(T a) const {
    return static_cast<T>(~a);
  }
};
struct Cnot {
  template <class T>
  T operator()(T a) const {
    return a == 0;
  }
};
struct Shl {
  template <class T>
  T operator()(T a, uint32_t b) const {
    return b >= 8 * sizeof(T) ? T{0} : static_cast<T>(a << b);
  }
};
struct Shr {
  template <class T>
  T operator()(T a, uint32_t b) const {
    if (b >= 8 * sizeof(T))
      return std::is_signed_v<T> && a < 0 ? static_cast<T>(-1) : T{0};
    return static_cast<T>(a >> b);
  }
};
struct Bfe {
  template <class T>
  T operator()(T a, uint32_t b, uint32_t c) const {
    using U = std::make_unsigned_t<T>;
    constexpr uint32_t bits = 8 * sizeof(T);
    uint32_t position = b & 0xff, length = c & 0xff;
    if (length == 0)
      return 0;
    uint32_t last = std::min(position + length - 1, bits - 1);
    bool sign = std::is_signed_v<T> && (static_cast<U>(a) >> last & 1);
    U mask = length >= bits ? ~U{0} : (U{1} << length) - 1;
    U field = position >= bits ? U{0} : static_cast<U>(a) >> position;
    uint32_t present = position >= bits ? 0 : std::min(length, bits - position);
    field &= mask;
    if (sign && present < bits)
      field |= ~((U{1} << present) - 1);
    return static_cast<T>(field);
  }
};
/// bfi d, a, b, c, d: the field of a goes into b.
template <class T>
T insertField(T a, T b, uint32_t c, uint32_t d) {
  constexpr uint32_t bits = 8 * sizeof(T);
  uint32_t position = c & 0xff, length = d & 0xff;
  if (length == 0 || position >= bits)
    return b;
  T mask = length >= bits ? static_cast<T>(~T{0})
                          : static_cast<T>((T{1} << length) - 1);
  mask = static_cast<T>(mask << position);
  return static_cast<T>((b & ~mask) | (static_cast<T>(a << position) & mask));
}
struct Popc {
  template <class T>
  uint32_t operator()(T a) const {
    return static_cast<uint32_t>(
        __builtin_popcountll(static_cast<std::make_unsigned_t<T>>(a)));
  }
};
struct Clz {
  template <class T>
  uint32_t operator()(T a) const {
    return a == 0 ? 8 * sizeof(T)
                  : static_cast<uint32_t>(__builtin_clzll(
                        static_cast<std::make_unsigned_t<T>>(a))) -
                        (64 - 8 * static_cast<uint32_t>(sizeof(T)));
  }
};
struct Brev {
  template <class T>
  T operator()(T a) const {
    T r{};
    for (unsigned i = 0; i < 8 * sizeof(T); ++i)
      r |= static_cast<T>((a >> i & 1) << (8 * sizeof(T) - 1 - i));
    return r;
  }
};
struct Bfind {
  template <class T>
  uint32_t operator()(T a) const {
    using U = std::make_unsigned_t<T>;
    U u = static_cast<U>(std::is_signed_v<T> && a < 0 ? ~a : a);
    return u == 0 ? UINT32_MAX : 63 - static_cast<uint32_t>(__builtin_clzll(u));
  }
};
struct Prmt {
  uint32_t operator()(uint32_t a, uint32_t b, uint32_t c) const {
    uint64_t bytes = static_cast<uint64_t>(b) << 32 | a;
    uint32_t d = 0;
    for (unsigned i = 0; i < 4; ++i) {
      uint32_t selector = c >> 4 * i & 15;
      uint32_t byte = bytes >> 8 * (selector & 7) & 0xff;
      if (selector & 8)
        byte = byte & 0x80 ? 0xff : 0;
      d |= byte << 8 * i;
    }
    return d;
  }
};
template <bool Left, bool Wrap>
struct Shf {
  uint32_t operator()(uint32_t a, uint32_t b, uint32_t c) const {
    uint64_t both = static_cast<uint64_t>(b) << 32 | a;
    c = Wrap ? c & 31 : std::min(c, 32u);
    return static_cast<uint32_t>(Left ? both << c >> 32 : both >> c);
  }
};
} // namespace

//===----------------------------------------------------------------------===//
// Logic, shifts
//===----------------------------------------------------------------------===//

template <class F>
static Step onPredicates(Warp &warp, const Op &op, Mask mask) {
  Mask a = warp.predicate(op.s[0]) ^ (op.flags & 1 ? ~Mask{0} : 0);
  Mask b = warp.predicate(op.s[1]) ^ (op.flags & 2 ? ~Mask{0} : 0);
  Mask &d = warp.predicate(op.d);
  d = (d & ~mask) | (F()(a, b) & mask);
  return Step::Next;
}

template <class F>
static void decodeLogic(Decoder &decoder, Modifiers &modifiers, Op &op) {
  Type type = decoder.takeType(modifiers);
  decoder.expectOperands(3);
  op.d = decoder.destination(decoder.operand(0), type.bits);
  if (type.kind == Type::Predicate) {
    bool negatedA, negatedB;
    op.s[0] = decoder.predicate(decoder.operand(1), negatedA);
    op.s[1] = decoder.predicate(decoder.operand(2), negatedB);
    op.flags = negatedA | static_cast<uint32_t>(negatedB) << 1;
    op.handler = onPredicates<F>;
    return;
  }
  op.s[0] = decoder.source(1, type);
  op.s[1] = decoder.source(2, type);
  op.handler = type.bits == 16   ? mapBinary<F, uint16_t, uint16_t>
               : type.bits == 32 ? mapBinary<F, uint32_t, uint32_t>
                                 : mapBinary<F, uint64_t, uint64_t>;
}

template <class F>
static void decodeNot(Decoder &decoder, Modifiers &modifiers, Op &op) {
  Type type = decoder.takeType(modifiers);
  decoder.expectOperands(2);
  if (type.kind == Type::Predicate && std::is_same_v<F, Not>)
    return decodePredicateMove(decoder, op, /*invert=*/true);
  op.d = decoder.destination(decoder.operand(0), type.bits);
  op.s[0] = decoder.source(1, type);
  op.handler = type.bits == 16   ? mapUnary<F, uint16_t, uint16_t>
               : type.bits == 32 ? mapUnary<F, uint32_t, uint32_t>
               : type.bits == 64 ? mapUnary<F, uint64_t, uint64_t>
                                 : nullptr;
}

static void decodeShl(Decoder &decoder, Modifiers &modifiers, Op &op) {
  Type type = decoder.takeType(modifiers);
  decoder.expectOperands(3);
  op.d = decoder.destination(decoder.operand(0), type.bits);
  op.s[0] = decoder.source(1, type);
  op.s[1] = decoder.sourceBits(decoder.operand(2), 32);
  op.handler = type.bits == 16   ? mapBinary<Shl, uint16_t, uint16_t, uint32_t>
               : type.bits == 32 ? mapBinary<Shl, uint32_t, uint32_t, uint32_t>
                                 : mapBinary<Shl, uint64_t, uint64_t, uint32_t>;
}

template <class S, class U, class F>
static Handler pickShift(bool isSigned) {
  return isSigned ? mapBinary<F, S, S, uint32_t> : mapBinary<F, U, U, uint32_t>;
}

static void decodeShr(Decoder &decoder, Modifiers &modifiers, Op &op) {
  Type type = decoder.takeType(modifiers);
  decoder.expectOperands(3);
  bool isSigned = type.kind == Type::Signed;
  op.d = decoder.destination(decoder.operand(0), type.bits);
  op.s[0] = decoder.source(1, type);
  op.s[1] = decoder.sourceBits(decoder.operand(2), 32);
  op.handler = type.bits == 16   ? pickShift<int16_t, uint16_t, Shr>(isSigned)
               : type.bits == 32 ? pickShift<int32_t, uint32_t, Shr>(isSigned)
                                 : pickShift<int64_t, uint64_t, Shr>(isSigned);
}

static void decodeBfe(Decoder &decoder, Modifiers &modifiers, Op &op) {
  Type type = decoder.takeType(modifiers);
  decoder.expectOperands(4);
  op.d = decoder.destination(decoder.operand(0), type.bits);
  op.s[0] = decoder.source(1, type);
  op.s[1] = decoder.sourceBits(decoder.operand(2), 32);
  op.s[2] = decoder.sourceBits(decoder.operand(3), 32);
  bool isSigned = type.kind == Type::Signed;
  if (type.bits == 32)
    op.handler = isSigned
                     ? mapTernary<Bfe, int32_t, int32_t, uint32_t, uint32_t>
                     : mapTernary<Bfe, uint32_t, uint32_t, uint32_t, uint32_t>;
  else if (type.bits == 64)
    op.handler = isSigned
                     ? mapTernary<Bfe, int64_t, int64_t, uint32_t, uint32_t>
                     : mapTernary<Bfe, uint64_t, uint64_t, uint32_t, uint32_t>;
}

template <class T>
static Step insert(Warp &warp, const Op &op, Mask mask) {
  const T *a = warp.row<T>(op.s[0]), *b = warp.row<T>(op.s[1]);
  const auto *c = warp.row<uint32_t>(op.s[2]), *d = warp.row<uint32_t>(op.s[3]);
  T results[kLanes];
  for (unsigned i = 0; i < kLanes; ++i)
    results[i] = insertField<T>(a[i], b[i], c[i], d[i]);
  assign(warp.row<T>(op.d), results, mask);
  return Step::Next;
}

static void decodeBfi(Decoder &decoder, Modifiers &modifiers, Op &op) {
  Type type = decoder.takeType(modifiers);
  decoder.expectOperands(5);
  op.d = decoder.destination(decoder.operand(0), type.bits);
  op.s[0] = decoder.source(1, type);
  op.s[1] = decoder.source(2, type);
  op.s[2] = decoder.sourceBits(decoder.operand(3), 32);
  op.s[3] = decoder.sourceBits(decoder.operand(4), 32);
  op.handler = type.bits == 32   ? insert<uint32_t>
               : type.bits == 64 ? insert<uint64_t>
                                 : nullptr;
}

template <class F>
static void decodeCount(Decoder &decoder, Modifiers &modifiers, Op &op) {
  Type type = decoder.takeType(modifiers);
  decoder.expectOperands(2);
  op.d = decoder.destination(decoder.operand(0), 32);
  op.s[0] = decoder.source(1, type);
  if (type.bits == 32)
    op.handler = type.kind == Type::Signed ? mapUnary<F, uint32_t, int32_t>
                                           : mapUnary<F, uint32_t, uint32_t>;
  else if (type.bits == 64)
    op.handler = type.kind == Type::Signed ? mapUnary<F, uint32_t, int64_t>
                                           : mapUnary<F, uint32_t, uint64_t>;
}

static void decodePrmt(Decoder &decoder, Modifiers &modifiers, Op &op) {
  Type type = decoder.takeType(modifiers);
  decoder.expectOperands(4);
  op.d = decoder.destination(decoder.operand(0), 32);
  for (size_t i = 0; i < 3; ++i)
    op.s[i] = decoder.sourceBits(decoder.operand(i + 1), 32);
  if (type.bits == 32)
    op.handler = mapTernary<Prmt, uint32_t, uint32_t>;
}

static void decodeShf(Decoder &decoder, Modifiers &modifiers, Op &op) {
  Type type = decoder.takeType(modifiers);
  auto direction = modifiers.takeOneOf({"l", "r"});
  auto mode = modifiers.takeOneOf({"clamp", "wrap"});
  decoder.expectOperands(4);
  if (!direction || !mode || type.bits != 32)
    decoder.fail("expected a direction and a mode");
  op.d = decoder.destination(decoder.operand(0), 32);
  for (size_t i = 0; i < 3; ++i)
    op.s[i] = decoder.sourceBits(decoder.operand(i + 1), 32);
  bool left = *direction == 0, wrap = *mode == 1;
  op.handler = left
                   ? (wrap ? mapTernary<Shf<true, true>, uint32_t, uint32_t>
                           : mapTernary<Shf<true, false>, uint32_t, uint32_t>)
                   : (wrap ? mapTernary<Shf<false, true>, uint32_t, uint32_t>
                           : mapTernary<Shf<false, false>, uint32_t, uint32_t>);
}

static Step lop3(Warp &warp, const Op &op, Mask mask) {
  const auto *a = warp.row<uint32_t>(op.s[0]);
  const auto *b = warp.row<uint32_t>(op.s[1]);
  const auto *c = warp.row<uint32_t>(op.s[2]);
  uint32_t results[kLanes] = {};
  for (unsigned term = 0; term < 8; ++term) {
    if (!(op.imm >> term & 1))
      continue;
    for (unsigned i = 0; i < kLanes; ++i)
      results[i] |= (term & 4 ? a[i] : ~a[i]) & (term & 2 ? b[i] : ~b[i]) &
                    (term & 1 ? c[i] : ~c[i]);
  }
  assign(warp.row<uint32_t>(op.d), results, mask);
  return Step::Next;
}

static void decodeLop3(Decoder &decoder, Modifiers &modifiers, Op &op) {
  decoder.takeType(modifiers);
  decoder.expectOperands(5);
  op.d = decoder.destination(decoder.operand(0), 32);
  for (size_t i = 0; i < 3; ++i)
    op.s[i] = decoder.sourceBits(decoder.operand(i + 1), 32);
  op.imm = decoder.immediate(decoder.operand(4));
  op.handler = lop3;
}

void fp8emu::addLogic(DecodeTable &table) {
  table["and"] = decodeLogic<And>;
  table["or"] = decodeLogic<Or>;
  table["xor"] = decodeLogic<Xor>;
  table["not"] = decodeNot<Not>;
  table["cnot"] = decodeNot<Cnot>;
  table["shl"] = decodeShl;
  table["shr"] = decodeShr;
  table["bfe"] = decodeBfe;
  table["bfi"] = decodeBfi;
  table["popc"] = decodeCount<Popc>;
  table["clz"] = decodeCount<Clz>;
  table["bfind"] = decodeCount<Bfind>;
  table["brev"] = decodeNot<Brev>;
  table["prmt"] = decodePrmt;
  table["shf"] = decodeShf;
  table["lop3"] = decodeLop3;
}
