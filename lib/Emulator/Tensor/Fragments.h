//===- Fragments.h - What lanes hold of a product ---------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_EMULATOR_TENSOR_FRAGMENTS_H
#define FP8_LIB_EMULATOR_TENSOR_FRAGMENTS_H

#include "Exec/Machine.h"
#include "PTX/Decoder.h"
#include "TensorCore/Dot.h"

#include <cstring>

namespace fp8emu {

/// A warp's 16 rows of A, from four registers of each lane (PTX ISA, "Matrix
/// Fragments for mma.m16n8k32").
inline void readFragments(Warp &warp, const uint32_t *rows,
                          uint8_t (*out)[32]) {
  for (unsigned i = 0; i < 4; ++i) {
    const auto *words = warp.row<uint32_t>(rows[i]);
    for (unsigned lane = 0; lane < kLanes; ++lane)
      std::memcpy(out[lane / 4 + i % 2 * 8] + i / 2 * 16 + lane % 4 * 4,
                  words + lane, 4);
  }
}

/// Its 8 columns of B, from two.
inline void readColumns(Warp &warp, const uint32_t *rows, uint8_t (*out)[32]) {
  for (unsigned i = 0; i < 2; ++i) {
    const auto *words = warp.row<uint32_t>(rows[i]);
    for (unsigned lane = 0; lane < kLanes; ++lane)
      std::memcpy(out[lane / 4] + i * 16 + lane % 4 * 4, words + lane, 4);
  }
}

/// Where the product has what register `i` of a lane holds.
inline size_t locateSum(unsigned i, unsigned lane, unsigned columns) {
  unsigned row = lane / 4 + i / 2 % 2 * 8;
  unsigned column = i / 4 * 8 + lane % 4 * 2 + i % 2;
  return size_t{row} * columns + column;
}

/// The type of that name, of a byte or more.
inline Element takeElement(Decoder &decoder, std::string_view name) {
  for (size_t i = 0; i < std::size(fp8rt::kTensorCoreFormats); ++i)
    if (auto type = static_cast<Element>(i);
        getFormat(type).name == name && getBits(type) >= 8)
      return type;
  decoder.fail("unknown type '" + std::string(name) + "'");
}

/// Whether the instructions multiply one type by the other.
inline bool goTogether(Element a, Element b) {
  return getBytes(a) == getBytes(b) && (getBytes(a) == 1 || a == b);
}

/// mma.sync with a kind, whose name and .sync.aligned have been taken.
void decodeScaledMma(Decoder &decoder, Modifiers &modifiers, Op &op);

} // namespace fp8emu

#endif // FP8_LIB_EMULATOR_TENSOR_FRAGMENTS_H
