//===- Atomics.cpp - atom and red -----------------------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Exec/Addresses.h"
#include "TensorCore/Floats.h"

using namespace fp8emu;

namespace {
struct AtomAdd {
  template <class T>
  T operator()(T old, T b) const {
    return old + b;
  }
};
struct AtomAnd {
  template <class T>
  T operator()(T old, T b) const {
    return old & b;
  }
};
struct AtomOr {
  template <class T>
  T operator()(T old, T b) const {
    return old | b;
  }
};
struct AtomXor {
  template <class T>
  T operator()(T old, T b) const {
    return old ^ b;
  }
};
struct AtomExch {
  template <class T>
  T operator()(T, T b) const {
    return b;
  }
};
struct AtomMin {
  template <class T>
  T operator()(T old, T b) const {
    return b < old ? b : old;
  }
};
struct AtomMax {
  template <class T>
  T operator()(T old, T b) const {
    return b > old ? b : old;
  }
};
struct AtomInc {
  uint32_t operator()(uint32_t old, uint32_t b) const {
    return old >= b ? 0 : old + 1;
  }
};
struct AtomDec {
  uint32_t operator()(uint32_t old, uint32_t b) const {
    return old == 0 || old > b ? b : old - 1;
  }
};
struct AtomAddF {
  float operator()(float old, float b) const { return canonical(old + b); }
};
} // namespace

/// One lane after the other, the first of which the seed draws: their order is
/// nobody's to rely on. Threads of the host may run other streams.
template <class F, class T>
static Step atomic(Warp &warp, const Op &op, Mask mask) {
  uint8_t *host[kLanes];
  resolve(warp, op, mask, op.s[0], sizeof(T), Access::Atomic, host);
  const T *b = warp.row<T>(op.s[1]);
  alignas(64) T results[kLanes];
  uint32_t first = warp.cta.cluster.random(kLanes);
  for (unsigned i = 0; i < kLanes; ++i) {
    unsigned lane = (i + first) % kLanes;
    if (!(mask >> lane & 1))
      continue;
    auto *place = reinterpret_cast<T *>(host[lane]);
    T old, desired;
    __atomic_load(place, &old, __ATOMIC_SEQ_CST);
    do
      desired = F()(old, b[lane]);
    while (!__atomic_compare_exchange(place, &old, &desired, false,
                                      __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST));
    results[lane] = old;
  }
  if (op.count)
    assign(warp.row<T>(op.d), results, mask);
  warp.cta.cluster.notify();
  return Step::Next;
}

template <class T>
static Step compareAndSwap(Warp &warp, const Op &op, Mask mask) {
  uint8_t *host[kLanes];
  resolve(warp, op, mask, op.s[0], sizeof(T), Access::Atomic, host);
  const T *b = warp.row<T>(op.s[1]), *c = warp.row<T>(op.s[2]);
  T results[kLanes];
  uint32_t first = warp.cta.cluster.random(kLanes);
  for (unsigned i = 0; i < kLanes; ++i) {
    unsigned lane = (i + first) % kLanes;
    if (!(mask >> lane & 1))
      continue;
    T expected = b[lane], desired = c[lane];
    __atomic_compare_exchange(reinterpret_cast<T *>(host[lane]), &expected,
                              &desired, false, __ATOMIC_SEQ_CST,
                              __ATOMIC_SEQ_CST);
    results[lane] = expected;
  }
  assign(warp.row<T>(op.d), results, mask);
  warp.cta.cluster.notify();
  return Step::Next;
}

/// Elements of a vector beside each other, each of which is added by itself.
static Step addVector(Warp &warp, const Op &op, Mask mask) {
  uint8_t *host[kLanes];
  resolve(warp, op, mask, op.s[0], sizeof(float) * op.count, Access::Atomic,
          host);
  const uint32_t *rows = &warp.cta.cluster.grid.program.rows[op.rows];
  uint32_t first = warp.cta.cluster.random(kLanes);
  for (unsigned i = 0; i < kLanes; ++i) {
    unsigned lane = (i + first) % kLanes;
    if (!(mask >> lane & 1))
      continue;
    for (unsigned e = 0; e < op.count; ++e) {
      auto *place = reinterpret_cast<float *>(host[lane]) + e;
      float old, desired;
      __atomic_load(place, &old, __ATOMIC_SEQ_CST);
      do
        desired = AtomAddF()(old, warp.row<float>(rows[e])[lane]);
      while (!__atomic_compare_exchange(place, &old, &desired, false,
                                        __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST));
    }
  }
  warp.cta.cluster.notify();
  return Step::Next;
}

/// red.add of .v2 or .v4 of f32 in global memory, as of sm_90.
static void decodeVector(Decoder &decoder, const Operand &value, Op &op,
                         unsigned count) {
  auto elements = decoder.elements(value);
  if (elements.size() != count)
    decoder.fail("expected " + std::to_string(count) + " elements, but got " +
                 std::to_string(elements.size()));
  std::vector<uint32_t> rows;
  for (const Operand *element : elements)
    rows.push_back(decoder.sourceBits(*element, 32));
  op.rows = decoder.addRows(rows);
  op.count = static_cast<uint16_t>(count);
  op.handler = addVector;
}

template <class F>
static Handler pickBits(Type type) {
  return type.bits == 32   ? atomic<F, uint32_t>
         : type.bits == 64 ? atomic<F, uint64_t>
                           : nullptr;
}

template <class F>
static Handler pickOrdered(Type type) {
  if (type.kind == Type::Signed)
    return type.bits == 32 ? atomic<F, int32_t> : atomic<F, int64_t>;
  return pickBits<F>(type);
}

static void decodeAtomic(Decoder &decoder, Modifiers &modifiers, Op &op,
                         bool hasResult) {
  Place place = takePlace(modifiers);
  op.flags = static_cast<uint32_t>(place);
  if (modifiers.take("acquire"))
    op.flags |= kAcquire;
  if (modifiers.take("release"))
    op.flags |= kRelease;
  if (modifiers.take("acq_rel"))
    op.flags |= kAcquire | kRelease;
  modifiers.take("relaxed");
  modifiers.takeOneOf({"cta", "cluster", "gpu", "sys"});
  auto what = modifiers.takeOneOf(
      {"add", "and", "or", "xor", "exch", "min", "max", "inc", "dec", "cas"});
  auto vector = modifiers.takeOneOf({"v2", "v4"});
  std::optional<Type> type = modifiers.takeType();
  if (!what || !type)
    decoder.fail("expected an operation and a type");
  bool cas = *what == 9;
  size_t first = hasResult ? 1 : 0;
  decoder.expectOperands(first + 2 + cas);
  Decoder::Address address = decoder.address(decoder.operand(first));
  op.s[0] = address.row;
  op.imm = address.offset;
  op.flags |= address.wide ? kWideAddress : 0;
  if (vector) {
    bool isAddition = *what == 0 && type->kind == Type::Float &&
                      type->bits == 32 && !hasResult;
    if (!isAddition || place != Place::Global)
      decoder.fail("expected vectors of red.global.add.f32 alone");
    op.width = 4;
    return decodeVector(decoder, decoder.operand(1), op, 2u << *vector);
  }
  op.s[1] = decoder.source(first + 1, *type);
  op.width = static_cast<uint8_t>(type->registerBits() / 8);
  op.count = hasResult;
  if (hasResult)
    op.d = decoder.destination(decoder.operand(0), type->registerBits());
  if (type->kind == Type::Float) {
    if (*what == 0 && type->bits == 32)
      op.handler = atomic<AtomAddF, float>;
    return;
  }
  switch (*what) {
  case 0:
    op.handler = pickBits<AtomAdd>(*type);
    break;
  case 1:
    op.handler = pickBits<AtomAnd>(*type);
    break;
  case 2:
    op.handler = pickBits<AtomOr>(*type);
    break;
  case 3:
    op.handler = pickBits<AtomXor>(*type);
    break;
  case 4:
    op.handler = pickBits<AtomExch>(*type);
    break;
  case 5:
    op.handler = pickOrdered<AtomMin>(*type);
    break;
  case 6:
    op.handler = pickOrdered<AtomMax>(*type);
    break;
  case 7:
    op.handler = type->bits == 32 ? atomic<AtomInc, uint32_t> : nullptr;
    break;
  case 8:
    op.handler = type->bits == 32 ? atomic<AtomDec, uint32_t> : nullptr;
    break;
  case 9:
    op.s[2] = decoder.source(first + 2, *type);
    op.handler = type->bits == 32   ? compareAndSwap<uint32_t>
                 : type->bits == 64 ? compareAndSwap<uint64_t>
                                    : nullptr;
  }
}

void fp8emu::addAtomics(DecodeTable &table) {
  table["atom"] = [](Decoder &d, Modifiers &m, Op &op) {
    decodeAtomic(d, m, op, /*hasResult=*/true);
  };
  table["red"] = [](Decoder &d, Modifiers &m, Op &op) {
    decodeAtomic(d, m, op, /*hasResult=*/false);
  };
}
