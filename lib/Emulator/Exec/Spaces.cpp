//===- Spaces.cpp - Addresses of one space in another ---------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Exec/Lanes.h"

using namespace fp8emu;

template <bool To, uint64_t Window>
static Step convertAddress(Warp &warp, const Op &op, Mask mask) {
  const auto *a = warp.row<uint64_t>(op.s[0]);
  alignas(64) uint64_t results[kLanes];
  for (unsigned i = 0; i < kLanes; ++i)
    results[i] = To ? a[i] - Window : a[i] + Window;
  assign(warp.row<uint64_t>(op.d), results, mask);
  return Step::Next;
}

/// Parameters lie in memory of the host, as global memory does.
static Step convertParamAddress(Warp &warp, const Op &op, Mask mask) {
  const auto *a = warp.row<uint64_t>(op.s[0]);
  auto base = reinterpret_cast<uint64_t>(warp.cta.cluster.grid.params.data());
  alignas(64) uint64_t results[kLanes];
  for (unsigned i = 0; i < kLanes; ++i)
    results[i] = op.flags ? a[i] - base : a[i] + base;
  assign(warp.row<uint64_t>(op.d), results, mask);
  return Step::Next;
}

static void decodeCvta(Decoder &decoder, Modifiers &modifiers, Op &op) {
  bool to = modifiers.take("to");
  auto space =
      modifiers.takeOneOf({"global", "shared", "shared::cta", "shared::cluster",
                           "local", "const", "param", "param::entry"});
  std::optional<Type> type = modifiers.takeType();
  if (!space || !type || !type->is(Type::Unsigned, 64))
    decoder.fail("expected a space and .u64");
  decoder.expectOperands(2);
  op.d = decoder.destination(decoder.operand(0), 64);
  op.s[0] = decoder.sourceBits(decoder.operand(1), 64);
  switch (*space) {
  case 0:
  case 5:
    op.handler = convertAddress<false, 0>;
    break;
  case 1:
  case 2:
  case 3:
    op.handler = to ? convertAddress<true, kSharedWindow>
                    : convertAddress<false, kSharedWindow>;
    break;
  case 4:
    op.handler = to ? convertAddress<true, kLocalWindow>
                    : convertAddress<false, kLocalWindow>;
    break;
  default:
    op.flags = to;
    op.handler = convertParamAddress;
  }
}

/// mapa: the same place in another block of the cluster.
template <class T>
static Step mapa(Warp &warp, const Op &op, Mask mask) {
  const T *a = warp.row<T>(op.s[0]);
  const auto *rank = warp.row<uint32_t>(op.s[1]);
  T results[kLanes];
  uint64_t window = op.flags ? kSharedWindow : 0;
  for (unsigned i = 0; i < kLanes; ++i) {
    if (!(mask >> i & 1))
      continue;
    if (rank[i] >= warp.cta.cluster.ctas.size())
      warp.fault(op, Mask{1} << i, kIllegalAddress,
                 "expected a block of the cluster, of " +
                     std::to_string(warp.cta.cluster.ctas.size()) +
                     ", but got " + std::to_string(rank[i]));
    uint64_t offset = (a[i] - window) & kSharedOffsetMask;
    results[i] = static_cast<T>(
        window + (static_cast<uint64_t>(rank[i]) << kRankShift | offset));
  }
  assign(warp.row<T>(op.d), results, mask);
  return Step::Next;
}

static void decodeMapa(Decoder &decoder, Modifiers &modifiers, Op &op) {
  bool shared = modifiers.take("shared::cluster");
  std::optional<Type> type = modifiers.takeType();
  if (!type || type->kind != Type::Unsigned || type->bits < 32)
    decoder.fail("expected .u32 or .u64");
  decoder.expectOperands(3);
  op.d = decoder.destination(decoder.operand(0), type->bits);
  op.s[0] = decoder.source(1, *type);
  op.s[1] = decoder.sourceBits(decoder.operand(2), 32);
  op.flags = !shared;
  op.handler = type->bits == 32 ? mapa<uint32_t> : mapa<uint64_t>;
}

static Step isSpace(Warp &warp, const Op &op, Mask mask) {
  const auto *a = warp.row<uint64_t>(op.s[0]);
  Mask result = 0;
  for (unsigned i = 0; i < kLanes; ++i) {
    uint64_t window = a[i] >> 56 << 56;
    bool is =
        op.flags == 0 ? window == 0 : window == (uint64_t{op.flags} << 56);
    result |= Mask{is} << i;
  }
  Mask &d = warp.predicate(op.d);
  d = (d & ~mask) | (result & mask);
  return Step::Next;
}

static void decodeIsSpace(Decoder &decoder, Modifiers &modifiers, Op &op) {
  auto space = modifiers.takeOneOf(
      {"global", "shared", "local", "shared::cta", "shared::cluster"});
  if (!space)
    decoder.fail("expected a space");
  decoder.expectOperands(2);
  op.d = decoder.destination(decoder.operand(0), 1);
  op.s[0] = decoder.sourceBits(decoder.operand(1), 64);
  op.flags = *space == 0 ? 0 : *space == 2 ? 2 : 1;
  op.handler = isSpace;
}

void fp8emu::addSpaces(DecodeTable &table) {
  table["cvta"] = decodeCvta;
  table["mapa"] = decodeMapa;
  table["isspacep"] = decodeIsSpace;
}
