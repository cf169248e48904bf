//===- Compare.cpp - setp, set and their like -----------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Exec/Lanes.h"
#include "TensorCore/Floats.h"

using namespace fp8emu;

/// Bits of Op::flags: how the result meets the third source, and whether that
/// is negated.
enum : uint32_t { kAnd = 1, kOr = 2, kXor = 3, kCombine = 3, kNegated = 4 };

namespace {
struct Eq {
  template <class T>
  bool operator()(T a, T b) const {
    return a == b;
  }
};
struct Ne { // of floats: ordered
  template <class T>
  bool operator()(T a, T b) const {
    return a < b || a > b;
  }
};
struct Lt {
  template <class T>
  bool operator()(T a, T b) const {
    return a < b;
  }
};
struct Le {
  template <class T>
  bool operator()(T a, T b) const {
    return a <= b;
  }
};
struct Gt {
  template <class T>
  bool operator()(T a, T b) const {
    return a > b;
  }
};
struct Ge {
  template <class T>
  bool operator()(T a, T b) const {
    return a >= b;
  }
};
struct Num {
  template <class T>
  bool operator()(T a, T b) const {
    return a == a && b == b;
  }
};
template <class F>
struct Negation {
  template <class T>
  bool operator()(T a, T b) const {
    return !F()(a, b);
  }
};
template <float (*Convert)(uint16_t), class F>
struct Narrow {
  bool operator()(uint16_t a, uint16_t b) const {
    return F()(Convert(a), Convert(b));
  }
};
} // namespace

template <class F, class T>
static Step compare(Warp &warp, const Op &op, Mask mask) {
  const T *a = warp.row<T>(op.s[0]), *b = warp.row<T>(op.s[1]);
  alignas(64) int32_t words[kLanes];
  for (unsigned i = 0; i < kLanes; ++i)
    words[i] = F()(a[i], b[i]) ? -1 : 0;
  Mask result = packLanes(words), other = ~result;
  if (op.flags & kCombine) {
    Mask c = warp.predicate(op.s[2]) ^ (op.flags & kNegated ? ~Mask{0} : 0);
    switch (op.flags & kCombine) {
    case kAnd:
      result &= c, other &= c;
      break;
    case kOr:
      result |= c, other |= c;
      break;
    case kXor:
      result ^= c, other ^= c;
      break;
    }
  }
  Mask &p = warp.predicate(op.d);
  p = (p & ~mask) | (result & mask);
  if (op.count == 2) {
    Mask &q = warp.predicate(op.s[3]);
    q = (q & ~mask) | (other & mask);
  }
  return Step::Next;
}

/// Compares pairs: a predicate of the lower halves and one of the upper ones.
template <class F>
static Step compareHalves(Warp &warp, const Op &op, Mask mask) {
  const uint32_t *a = warp.row<uint32_t>(op.s[0]),
                 *b = warp.row<uint32_t>(op.s[1]);
  for (unsigned half = 0; half < 2; ++half) {
    alignas(64) int32_t words[kLanes];
    for (unsigned i = 0; i < kLanes; ++i)
      words[i] = F()(static_cast<uint16_t>(a[i] >> 16 * half),
                     static_cast<uint16_t>(b[i] >> 16 * half))
                     ? -1
                     : 0;
    Mask &p = warp.predicate(half == 0 ? op.d : op.s[3]);
    p = (p & ~mask) | (packLanes(words) & mask);
  }
  return Step::Next;
}

template <class F>
static Handler pick(Type type) {
  bool isSigned = type.kind == Type::Signed;
  if (type.packed)
    return type.kind == Type::BFloat  ? compareHalves<Narrow<fromBF16, F>>
           : type.kind == Type::Float ? compareHalves<Narrow<fromF16, F>>
                                      : nullptr;
  if (type.kind == Type::BFloat)
    return compare<Narrow<fromBF16, F>, uint16_t>;
  if (type.kind == Type::Float)
    return type.bits == 16   ? compare<Narrow<fromF16, F>, uint16_t>
           : type.bits == 32 ? compare<F, float>
                             : compare<F, double>;
  switch (type.bits) {
  case 16:
    return isSigned ? compare<F, int16_t> : compare<F, uint16_t>;
  case 32:
    return isSigned ? compare<F, int32_t> : compare<F, uint32_t>;
  case 64:
    return isSigned ? compare<F, int64_t> : compare<F, uint64_t>;
  }
  return nullptr;
}

static Handler pick(std::string_view name, Type type) {
  if (name == "eq")
    return pick<Eq>(type);
  if (name == "ne")
    return pick<Ne>(type);
  if (name == "lt" || name == "lo")
    return pick<Lt>(type);
  if (name == "le" || name == "ls")
    return pick<Le>(type);
  if (name == "gt" || name == "hi")
    return pick<Gt>(type);
  if (name == "ge" || name == "hs")
    return pick<Ge>(type);
  if (type.isInteger())
    return nullptr;
  if (name == "equ")
    return pick<Negation<Ne>>(type);
  if (name == "neu")
    return pick<Negation<Eq>>(type);
  if (name == "ltu")
    return pick<Negation<Ge>>(type);
  if (name == "leu")
    return pick<Negation<Gt>>(type);
  if (name == "gtu")
    return pick<Negation<Le>>(type);
  if (name == "geu")
    return pick<Negation<Lt>>(type);
  if (name == "num")
    return pick<Num>(type);
  if (name == "nan")
    return pick<Negation<Num>>(type);
  return nullptr;
}

static void decodeSetp(Decoder &decoder, Modifiers &modifiers, Op &op) {
  if (modifiers.empty())
    decoder.fail("expected a comparison");
  std::string_view comparison = modifiers.takeNext();
  if (auto combine = modifiers.takeOneOf({"and", "or", "xor"}))
    op.flags = *combine + 1;
  modifiers.take("ftz");
  std::optional<Type> type = modifiers.takeType();
  if (!type)
    decoder.fail("expected a type");
  decoder.expectOperands(op.flags ? 4 : 3);
  const Operand &d = decoder.operand(0);
  if (d.kind == Operand::Pair) {
    op.d = decoder.destination(d.elements[0], 1);
    op.s[3] = decoder.destination(d.elements[1], 1);
    op.count = 2;
  } else {
    op.d = decoder.destination(d, 1);
  }
  if (type->packed && (op.count != 2 || op.flags))
    decoder.fail("expected a pair of predicates for a pair of numbers");
  op.s[0] = decoder.source(1, *type);
  op.s[1] = decoder.source(2, *type);
  if (op.flags) {
    bool negated;
    op.s[2] = decoder.predicate(decoder.operand(3), negated);
    op.flags |= negated ? kNegated : 0;
  }
  op.handler = pick(comparison, *type);
  if (!op.handler)
    decoder.fail("unknown comparison '" + std::string(comparison) + "'");
}

/// Tests what kind of number an f32 or f64 is.
template <class T, int... Kinds>
static Step testKind(Warp &warp, const Op &op, Mask mask) {
  const T *a = warp.row<T>(op.s[0]);
  alignas(64) int32_t words[kLanes];
  for (unsigned i = 0; i < kLanes; ++i) {
    int kind = std::fpclassify(a[i]);
    words[i] = ((kind == Kinds) || ...) ? -1 : 0;
  }
  Mask &p = warp.predicate(op.d);
  p = (p & ~mask) | (packLanes(words) & mask);
  return Step::Next;
}

template <int... Kinds>
static Handler pickKind(Type type) {
  return type.is(Type::Float, 32)   ? testKind<float, Kinds...>
         : type.is(Type::Float, 64) ? testKind<double, Kinds...>
                                    : nullptr;
}

/// A zero is a normal number (PTX ISA 9.7.3).
static void decodeTestp(Decoder &decoder, Modifiers &modifiers, Op &op) {
  auto kind = modifiers.takeOneOf(
      {"finite", "infinite", "number", "notanumber", "normal", "subnormal"});
  std::optional<Type> type = modifiers.takeType();
  if (!kind || !type)
    decoder.fail("expected a kind of number and a type");
  decoder.expectOperands(2);
  op.d = decoder.destination(decoder.operand(0), 1);
  op.s[0] = decoder.source(1, *type);
  switch (*kind) {
  case 0:
    op.handler = pickKind<FP_ZERO, FP_SUBNORMAL, FP_NORMAL>(*type);
    break;
  case 1:
    op.handler = pickKind<FP_INFINITE>(*type);
    break;
  case 2:
    op.handler = pickKind<FP_ZERO, FP_SUBNORMAL, FP_NORMAL, FP_INFINITE>(*type);
    break;
  case 3:
    op.handler = pickKind<FP_NAN>(*type);
    break;
  case 4:
    op.handler = pickKind<FP_ZERO, FP_NORMAL>(*type);
    break;
  case 5:
    op.handler = pickKind<FP_SUBNORMAL>(*type);
    break;
  }
}

void fp8emu::addComparisons(DecodeTable &table) {
  table["setp"] = decodeSetp;
  table["testp"] = decodeTestp;
}
