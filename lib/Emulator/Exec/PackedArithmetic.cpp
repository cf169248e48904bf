//===- PackedArithmetic.cpp - Pairs of f32 --------------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Exec/Lanes.h"

#include <cmath>

using namespace fp8emu;

namespace {
struct AddPair {
  float operator()(float a, float b, float) const { return a + b; }
};
struct SubPair {
  float operator()(float a, float b, float) const { return a - b; }
};
struct MulPair {
  float operator()(float a, float b, float) const { return a * b; }
};
struct FmaPair {
  float operator()(float a, float b, float c) const {
    return std::fma(a, b, c);
  }
};
} // namespace

template <class F, bool Flush>
static Step mapPairs(Warp &warp, const Op &op, Mask mask) {
  const uint64_t *sources[3];
  for (unsigned i = 0; i < 3; ++i)
    sources[i] = warp.row<uint64_t>(op.s[i]);
  alignas(64) uint64_t results[kLanes];
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    uint64_t result = 0;
    for (unsigned half = 0; half < 2; ++half) {
      float x[3];
      for (unsigned i = 0; i < 3; ++i) {
        x[i] = bitCast<float>(
            static_cast<uint32_t>(sources[i][lane] >> 32 * half));
        x[i] = Flush ? flush(x[i]) : x[i];
      }
      float y = canonical(F()(x[0], x[1], x[2]));
      result |= uint64_t{bitCast<uint32_t>(Flush ? flush(y) : y)} << 32 * half;
    }
    results[lane] = result;
  }
  assign(warp.row<uint64_t>(op.d), results, mask);
  return Step::Next;
}

template <class F>
static void decodePairs(Decoder &decoder, Modifiers &modifiers, Op &op,
                        size_t sources) {
  modifiers.take("f32x2");
  modifiers.take("rn");
  decoder.expectOperands(1 + sources);
  op.d = decoder.destination(decoder.operand(0), 64);
  for (size_t i = 0; i < 3; ++i)
    op.s[i] =
        decoder.sourceBits(decoder.operand(std::min(i, sources - 1) + 1), 64);
  op.handler = modifiers.take("ftz") ? mapPairs<F, true> : mapPairs<F, false>;
}

bool fp8emu::decodePackedArithmetic(Decoder &decoder, Modifiers &modifiers,
                                    Op &op) {
  if (!modifiers.has("f32x2"))
    return false;
  if (modifiers.stem == "add")
    decodePairs<AddPair>(decoder, modifiers, op, 2);
  else if (modifiers.stem == "sub")
    decodePairs<SubPair>(decoder, modifiers, op, 2);
  else if (modifiers.stem == "mul")
    decodePairs<MulPair>(decoder, modifiers, op, 2);
  else if (modifiers.stem == "fma")
    decodePairs<FmaPair>(decoder, modifiers, op, 3);
  else
    return false;
  return true;
}
