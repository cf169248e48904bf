//===- MixedArithmetic.cpp - f32 with terms of 16 bits --------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Exec/Arithmetic.h"

using namespace fp8emu;

namespace {
template <bool IsBF16>
float widen(uint16_t x) {
  return IsBF16 ? fromBF16(x) : fromF16(x);
}
template <bool IsBF16>
struct AddMixed {
  float operator()(uint16_t a, float c) const {
    return canonical(widen<IsBF16>(a) + c);
  }
};
template <bool IsBF16>
struct SubMixed {
  float operator()(uint16_t a, float c) const {
    return canonical(widen<IsBF16>(a) - c);
  }
};
template <bool IsBF16>
struct FmaMixed {
  float operator()(uint16_t a, uint16_t b, float c) const {
    return canonical(std::fma(widen<IsBF16>(a), widen<IsBF16>(b), c));
  }
};
} // namespace

template <bool IsBF16>
static Handler pick(std::string_view stem) {
  if (stem == "add")
    return mapBinary<AddMixed<IsBF16>, float, uint16_t, float>;
  if (stem == "sub")
    return mapBinary<SubMixed<IsBF16>, float, uint16_t, float>;
  return mapTernary<FmaMixed<IsBF16>, float, uint16_t, uint16_t, float>;
}

bool fp8emu::decodeMixedArithmetic(Decoder &decoder, Modifiers &modifiers,
                                   Op &op) {
  bool isBF16 = modifiers.has("bf16");
  if (!modifiers.has("f32") || (!isBF16 && !modifiers.has("f16")))
    return false;
  modifiers.take("f32");
  modifiers.take(isBF16 ? "bf16" : "f16");
  bool isFma = modifiers.stem == "fma";
  if (!modifiers.take("rn") && isFma)
    decoder.fail("expected .rn");
  size_t sources = isFma ? 3 : 2;
  decoder.expectOperands(1 + sources);
  op.d = decoder.destination(decoder.operand(0), 32);
  // The last one alone has 32 bits.
  for (size_t i = 0; i < sources; ++i)
    op.s[i] =
        decoder.sourceBits(decoder.operand(i + 1), i + 1 == sources ? 32 : 16);
  op.handler =
      isBF16 ? pick<true>(modifiers.stem) : pick<false>(modifiers.stem);
  return true;
}
