//===- PlainDot.cpp - Sums of f32 -----------------------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Dot.h"

#include <algorithm>
#include <array>
#include <memory>

using namespace fp8emu;

/// Numbers of 8 bits and less are looked up.
static float load(Element type, const uint8_t *row, unsigned k) {
  static const auto tables = [] {
    std::array<std::array<float, 256>, std::size(fp8rt::kTensorCoreFormats)>
        made = {};
    for (size_t i = 0; i < made.size(); ++i)
      if (auto type = static_cast<Element>(i); getBytes(type) == 1)
        for (unsigned code = 0; code < 256; ++code) {
          auto byte = static_cast<uint8_t>(code);
          made[i][code] = static_cast<float>(getValue(type, &byte, 0));
        }
    return made;
  }();
  if (getBytes(type) == 1)
    return tables[static_cast<size_t>(type)][row[k]];
  return static_cast<float>(getValue(type, row, k));
}

void fp8emu::multiplyAccumulatePlain(const Operands &operands, bool fresh,
                                     float *accumulators) {
  using Columns = std::array<std::array<float, kMaxColumns>, kMaxProducts>;
  static thread_local auto columns = std::make_unique<Columns>();
  unsigned count = 32 / getBytes(operands.typeA);
  for (unsigned n = 0; n < operands.columns; ++n)
    for (unsigned k = 0; k < count; ++k)
      (*columns)[k][n] = load(operands.typeB, operands.b[n], k);
  for (unsigned m = 0; m < kWarpRows; ++m) {
    float *sums = accumulators + size_t{m} * operands.columns;
    if (fresh)
      std::fill_n(sums, operands.columns, 0.0f);
    for (unsigned k = 0; k < count; ++k) {
      float a = load(operands.typeA, operands.a[m], k);
      for (unsigned n = 0; n < operands.columns; ++n)
        sums[n] += a * (*columns)[k][n];
    }
  }
}
