//===- LoadStore.cpp - Loads, stores, prefetches --------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Exec/Addresses.h"

using namespace fp8emu;

/// Elements of T, registers of R, which may be wider; Signed elements are
/// extended by their sign.
template <class T, class R>
static Step load(Warp &warp, const Op &op, Mask mask) {
  uint8_t *host[kLanes];
  resolve(warp, op, mask, op.s[0], sizeof(T) * op.count, Access::Read, host);
  const uint32_t *rows = &warp.cta.cluster.grid.program.rows[op.rows];
  for (unsigned e = 0; e < op.count; ++e) {
    R *d = warp.row<R>(rows[e]);
    for (unsigned i = 0; i < kLanes; ++i) {
      if (!(mask >> i & 1))
        continue;
      T value;
      std::memcpy(&value, host[i] + e * sizeof(T), sizeof(T));
      d[i] = static_cast<R>(value);
    }
  }
  return Step::Next;
}

template <class T, class R>
static Step store(Warp &warp, const Op &op, Mask mask) {
  uint8_t *host[kLanes];
  resolve(warp, op, mask, op.s[0], sizeof(T) * op.count, Access::Write, host);
  const uint32_t *rows = &warp.cta.cluster.grid.program.rows[op.rows];
  for (unsigned e = 0; e < op.count; ++e) {
    const R *s = warp.row<R>(rows[e]);
    for (unsigned i = 0; i < kLanes; ++i) {
      if (!(mask >> i & 1))
        continue;
      T value = static_cast<T>(s[i]);
      std::memcpy(host[i] + e * sizeof(T), &value, sizeof(T));
    }
  }
  return Step::Next;
}

template <class T>
static Handler pickRegister(unsigned bits, bool isLoad) {
  switch (bits) {
  case 16:
    if constexpr (sizeof(T) <= 2)
      return isLoad ? load<T, uint16_t> : store<T, uint16_t>;
    break;
  case 32:
    if constexpr (sizeof(T) <= 4)
      return isLoad ? load<T, uint32_t> : store<T, uint32_t>;
    break;
  case 64:
    if constexpr (sizeof(T) <= 8)
      return isLoad ? load<T, uint64_t> : store<T, uint64_t>;
    break;
  case 128:
    if constexpr (sizeof(T) == 16)
      return isLoad ? load<T, unsigned __int128> : store<T, unsigned __int128>;
    break;
  }
  return nullptr;
}

static Handler pick(Type type, unsigned bits, bool isLoad) {
  bool isSigned = type.kind == Type::Signed && isLoad;
  switch (type.registerBits()) {
  case 8:
    return isSigned ? pickRegister<int8_t>(bits, isLoad)
                    : pickRegister<uint8_t>(bits, isLoad);
  case 16:
    return isSigned ? pickRegister<int16_t>(bits, isLoad)
                    : pickRegister<uint16_t>(bits, isLoad);
  case 32:
    return isSigned ? pickRegister<int32_t>(bits, isLoad)
                    : pickRegister<uint32_t>(bits, isLoad);
  case 64:
    return pickRegister<uint64_t>(bits, isLoad);
  case 128:
    return pickRegister<unsigned __int128>(bits, isLoad);
  }
  return nullptr;
}

/// Hints about caches mean nothing here; semantics and scopes are kept.
static void takeSemantics(Modifiers &modifiers, Op &op) {
  if (modifiers.take("acquire"))
    op.flags |= kAcquire;
  if (modifiers.take("release"))
    op.flags |= kRelease;
  if (modifiers.take("relaxed") || modifiers.take("volatile") ||
      modifiers.take("mmio"))
    op.flags |= kRelaxed;
  modifiers.takeOneOf({"weak"});
  modifiers.takeOneOf({"cta", "cluster", "gpu", "sys"});
  modifiers.takeOneOf({"ca", "cg", "cs", "lu", "cv", "wb", "wt"});
  modifiers.take("nc");
  modifiers.takeOneOf({"L1::evict_normal", "L1::evict_unchanged",
                       "L1::evict_first", "L1::evict_last", "L1::no_allocate"});
  modifiers.takeOneOf(
      {"L2::evict_normal", "L2::evict_first", "L2::evict_last"});
  modifiers.takeOneOf({"L2::64B", "L2::128B", "L2::256B"});
}

static void decodeLoadStore(Decoder &decoder, Modifiers &modifiers, Op &op,
                            bool isLoad) {
  Place place = takePlace(modifiers);
  takeSemantics(modifiers, op);
  bool hint = modifiers.take("L2::cache_hint");
  auto vector = modifiers.takeOneOf({"v2", "v4", "v8"});
  std::optional<Type> type = modifiers.takeType();
  if (!type)
    decoder.fail("expected a type");
  decoder.expectOperands(hint ? 3 : 2);
  const Operand &where = decoder.operand(isLoad ? 1 : 0);
  // What a call is going to be given.
  if (place == Place::Param && !where.elements.empty() &&
      decoder.isLocal(where.elements[0]))
    place = Place::Local;
  op.flags |= static_cast<uint32_t>(place);
  if (!isLoad && (place == Place::Param || place == Place::Const))
    decoder.fail("expected a space that may be written");
  const Operand &value = decoder.operand(isLoad ? 0 : 1);
  Decoder::Address address = decoder.address(where);
  op.s[0] = address.row;
  op.imm = address.offset;
  if (address.wide)
    op.flags |= kWideAddress;
  auto elements = decoder.elements(value);
  op.count = static_cast<uint16_t>(vector ? 2u << *vector : 1u);
  op.width = static_cast<uint8_t>(type->registerBits() / 8);
  if (elements.size() != op.count)
    decoder.fail("expected " + std::to_string(op.count) +
                 " elements, but got " + std::to_string(elements.size()));
  if (op.count * op.width > 32 || op.width == 0)
    decoder.fail("expected at most 32 bytes");
  std::vector<uint32_t> rows;
  unsigned common = 0;
  for (const Operand *element : elements) {
    unsigned bits;
    rows.push_back(
        isLoad ? decoder.wideDestination(*element, type->registerBits(), bits)
               : decoder.wideSource(*element, type->registerBits(), bits));
    // Constants and sinks are of the size that they must have at least.
    bool isRegister = decoder.registerBits(*element) != 0;
    if (common != 0 && isRegister && bits != common)
      decoder.fail("expected registers of one size");
    common = std::max(common, bits);
  }
  for (size_t i = 0; i < elements.size(); ++i)
    if (decoder.registerBits(*elements[i]) == 0) {
      if (isLoad)
        rows[i] = decoder.destination(*elements[i], common);
      else
        rows[i] = decoder.sourceBits(*elements[i], common);
    }
  op.rows = decoder.addRows(rows);
  if (isLoad && vector)
    decoder.addVectorLoad();
  op.handler = pick(*type, common, isLoad);
}

static void decodeLoad(Decoder &decoder, Modifiers &modifiers, Op &op) {
  decodeLoadStore(decoder, modifiers, op, /*isLoad=*/true);
}
static void decodeStore(Decoder &decoder, Modifiers &modifiers, Op &op) {
  decodeLoadStore(decoder, modifiers, op, /*isLoad=*/false);
}

//===----------------------------------------------------------------------===//
// Prefetches
//===----------------------------------------------------------------------===//

/// An address that is not there does no harm, as on the chips.
static Step nothing(Warp &, const Op &, Mask) { return Step::Next; }

static void decodePrefetch(Decoder &decoder, Modifiers &modifiers, Op &op) {
  takePlace(modifiers);
  if (!modifiers.take("tensormap") && !modifiers.takeOneOf({"L1", "L2"}))
    decoder.fail("expected .tensormap, .L1 or .L2");
  modifiers.takeOneOf({"L2::evict_last", "L2::evict_normal"});
  decoder.expectOperands(1);
  decoder.address(decoder.operand(0));
  op.handler = nothing;
}

void fp8emu::addMemory(DecodeTable &table) {
  table["ld"] = decodeLoad;
  table["ldu"] = decodeLoad;
  table["st"] = decodeStore;
  table["prefetch"] = decodePrefetch;
  table["prefetchu"] = decodePrefetch;
}
