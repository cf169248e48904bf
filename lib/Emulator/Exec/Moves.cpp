//===- Moves.cpp - Moves and selections -----------------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Exec/Lanes.h"

using namespace fp8emu;

namespace {
struct Move {
  template <class T>
  T operator()(T a) const {
    return a;
  }
};
} // namespace

static Step movePredicate(Warp &warp, const Op &op, Mask mask) {
  Mask a = warp.predicate(op.s[0]) ^ (op.flags & 1 ? ~Mask{0} : 0);
  Mask &d = warp.predicate(op.d);
  d = (d & ~mask) | (a & mask);
  return Step::Next;
}

void fp8emu::decodePredicateMove(Decoder &decoder, Op &op, bool invert) {
  bool negated;
  op.d = decoder.destination(decoder.operand(0), 1);
  op.s[0] = decoder.predicate(decoder.operand(1), negated);
  op.flags = negated != invert;
  op.handler = movePredicate;
}

/// Parts of Narrow, the lowest first, make a Full.
template <class Full, class Narrow>
static Step pack(Warp &warp, const Op &op, Mask mask) {
  constexpr unsigned ratio = sizeof(Full) / sizeof(Narrow);
  const uint32_t *rows = &warp.cta.cluster.grid.program.rows[op.rows];
  Full results[kLanes] = {};
  for (unsigned part = 0; part < ratio; ++part) {
    const auto *source = warp.row<Narrow>(rows[part]);
    for (unsigned i = 0; i < kLanes; ++i)
      results[i] |= static_cast<Full>(source[i]) << 8 * sizeof(Narrow) * part;
  }
  assign(warp.row<Full>(op.d), results, mask);
  return Step::Next;
}

template <class Full, class Narrow>
static Step unpack(Warp &warp, const Op &op, Mask mask) {
  constexpr unsigned ratio = sizeof(Full) / sizeof(Narrow);
  const uint32_t *rows = &warp.cta.cluster.grid.program.rows[op.rows];
  Full source[kLanes];
  std::memcpy(source, warp.row<Full>(op.s[0]), sizeof(source));
  for (unsigned part = 0; part < ratio; ++part) {
    Narrow results[kLanes];
    for (unsigned i = 0; i < kLanes; ++i)
      results[i] = static_cast<Narrow>(source[i] >> 8 * sizeof(Narrow) * part);
    assign(warp.row<Narrow>(rows[part]), results, mask);
  }
  return Step::Next;
}

/// Four bytes, each in a row of 16 bits.
template <bool Pack>
static Step moveBytes(Warp &warp, const Op &op, Mask mask) {
  const uint32_t *rows = &warp.cta.cluster.grid.program.rows[op.rows];
  auto *whole = warp.row<uint32_t>(Pack ? op.d : op.s[0]);
  for (Mask rest = mask; rest; rest &= rest - 1) {
    auto lane = static_cast<unsigned>(__builtin_ctz(rest));
    uint32_t word = Pack ? 0 : whole[lane];
    for (unsigned i = 0; i < 4; ++i) {
      uint16_t &part = warp.row<uint16_t>(rows[i])[lane];
      if (Pack)
        word |= uint32_t{part & 0xffu} << 8 * i;
      else
        part = word >> 8 * i & 0xff;
    }
    whole[lane] = word;
  }
  return Step::Next;
}

template <bool Pack>
static Handler pickParts(unsigned full, size_t parts) {
  using U128 = unsigned __int128;
  if (full == 32 && parts == 4)
    return moveBytes<Pack>;
  if (full == 32 && parts == 2)
    return Pack ? pack<uint32_t, uint16_t> : unpack<uint32_t, uint16_t>;
  if (full == 64 && parts == 2)
    return Pack ? pack<uint64_t, uint32_t> : unpack<uint64_t, uint32_t>;
  if (full == 64 && parts == 4)
    return Pack ? pack<uint64_t, uint16_t> : unpack<uint64_t, uint16_t>;
  if (full == 128 && parts == 2)
    return Pack ? pack<U128, uint64_t> : unpack<U128, uint64_t>;
  if (full == 128 && parts == 4)
    return Pack ? pack<U128, uint32_t> : unpack<U128, uint32_t>;
  return nullptr;
}

static void decodeMov(Decoder &decoder, Modifiers &modifiers, Op &op) {
  Type type = decoder.takeType(modifiers);
  decoder.expectOperands(2);
  const Operand &d = decoder.operand(0), &a = decoder.operand(1);
  if (type.kind == Type::Predicate)
    return decodePredicateMove(decoder, op, /*invert=*/false);
  unsigned bits = type.registerBits();
  bool packs = a.kind == Operand::Vector;
  if (packs || d.kind == Operand::Vector) {
    auto parts = decoder.elements(packs ? a : d);
    std::vector<uint32_t> rows;
    for (const Operand *part : parts) {
      unsigned partBits =
          std::max(bits / static_cast<unsigned>(parts.size()), 16u);
      rows.push_back(packs ? decoder.sourceBits(*part, partBits)
                           : decoder.destination(*part, partBits));
    }
    op.rows = decoder.addRows(rows);
    if (packs)
      op.d = decoder.destination(d, bits);
    else
      op.s[0] = decoder.sourceBits(a, bits);
    op.handler = packs ? pickParts<true>(bits, parts.size())
                       : pickParts<false>(bits, parts.size());
    return;
  }
  op.d = decoder.destination(d, bits);
  op.s[0] = decoder.source(a, type);
  op.handler = bits == 16   ? mapUnary<Move, uint16_t, uint16_t>
               : bits == 32 ? mapUnary<Move, uint32_t, uint32_t>
               : bits == 64
                   ? mapUnary<Move, uint64_t, uint64_t>
                   : mapUnary<Move, unsigned __int128, unsigned __int128>;
}

template <class T>
static Step select(Warp &warp, const Op &op, Mask mask) {
  const T *a = warp.row<T>(op.s[0]), *b = warp.row<T>(op.s[1]);
  Mask which = warp.predicate(op.s[2]) ^ (op.flags ? ~Mask{0} : 0);
  alignas(64) T results[kLanes];
  for (unsigned i = 0; i < kLanes; ++i)
    results[i] = which >> i & 1 ? a[i] : b[i];
  assign(warp.row<T>(op.d), results, mask);
  return Step::Next;
}

static void decodeSelp(Decoder &decoder, Modifiers &modifiers, Op &op) {
  Type type = decoder.takeType(modifiers);
  decoder.expectOperands(4);
  unsigned bits = type.registerBits();
  op.d = decoder.destination(decoder.operand(0), bits);
  op.s[0] = decoder.source(1, type);
  op.s[1] = decoder.source(2, type);
  bool negated;
  op.s[2] = decoder.predicate(decoder.operand(3), negated);
  op.flags = negated;
  op.handler = bits == 16   ? select<uint16_t>
               : bits == 32 ? select<uint32_t>
                            : select<uint64_t>;
}

void fp8emu::addMoves(DecodeTable &table) {
  table["mov"] = decodeMov;
  table["selp"] = decodeSelp;
}
