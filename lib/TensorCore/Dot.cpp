//===- Dot.cpp - Sums of the tensor cores, to the bit ---------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Sums.h"

#include <cmath>
#include <cstring>
#include <memory>

using namespace fp8emu;

namespace {
class OperandSpecials : public SpecialTerms {
public:
  explicit OperandSpecials(const Operands &operands) : operands(operands) {}
  double sum(unsigned row, unsigned column, float c) const override;

private:
  const Operands &operands;
};
} // namespace

double OperandSpecials::sum(unsigned row, unsigned column, float c) const {
  double total = std::isfinite(c) ? 0 : c;
  unsigned count = 32 / getBytes(operands.typeA);
  // A NaN stays one, whatever is added.
  for (unsigned k = 0; k < count && !std::isnan(total); ++k) {
    double product = getValue(operands.typeA, operands.a[row], k) *
                     getValue(operands.typeB, operands.b[column], k);
    if (!std::isfinite(product))
      total += product;
  }
  return total;
}

/// Products of `count` k from `begin` on.
template <bool Wide>
static void multiply(const Operands &operands, unsigned begin, unsigned count,
                     bool fresh, float *accumulators) {
  static thread_local auto columns = std::make_unique<DecodedColumns>();
  // Products are moved up to where they are cut off.
  unsigned guard = (Wide ? kWideFraction : kNarrowFraction) -
                   getMantissaBits(operands.typeA) -
                   getMantissaBits(operands.typeB);
  for (unsigned n = 0; n < operands.columns; ++n) {
    columns->special[n] = false;
    for (unsigned k = 0; k < count; ++k) {
      Number number = loadNumber(operands.typeB, operands.b[n], begin + k);
      columns->significand[k][n] = number.significand;
      columns->exponent[k][n] = number.exponent;
      columns->special[n] |= number.special;
    }
  }
  OperandSpecials specials(operands);
  Products products{*columns, count, fresh, specials};
  for (unsigned m = 0; m < kWarpRows; ++m) {
    DecodedRow row;
    row.special = false;
    for (unsigned k = 0; k < count; ++k) {
      Number number = loadNumber(operands.typeA, operands.a[m], begin + k);
      row.significand[k] = number.significand * (1 << guard);
      row.exponent[k] = number.exponent;
      row.special |= number.special;
    }
    for (unsigned n = 0; n < operands.columns; n += kColumnBlock) {
      float *out = accumulators + m * operands.columns + n;
      if (Wide)
        products.addWide(row, m, n, out);
      else
        products.addNarrow(row, m, n, out);
    }
  }
}

void fp8emu::multiplyAccumulate(const Operands &operands, bool fresh,
                                float *accumulators) {
  unsigned count = 32 / getBytes(operands.typeA);
  if (getBytes(operands.typeA) == 1)
    multiply<false>(operands, 0, count, fresh, accumulators);
  else
    multiply<true>(operands, 0, count, fresh, accumulators);
}

void fp8emu::multiplyAccumulateHalves(const Operands &operands,
                                      float *accumulators) {
  constexpr unsigned half = kMaxProducts / 2;
  for (unsigned begin = 0; begin < kMaxProducts; begin += half)
    multiply<false>(operands, begin, half, /*fresh=*/false, accumulators);
}

void fp8emu::multiplyAccumulateWide(const Operands &operands,
                                    float *accumulators) {
  multiply<true>(operands, 0, kMaxProducts, /*fresh=*/false, accumulators);
}

/// The first two of each four codes as f16, or the others.
static void convertHalf(Element type, const uint8_t (&codes)[32], unsigned half,
                        uint8_t (&out)[32]) {
  for (unsigned i = 0; i < kMaxProducts / 2; ++i) {
    unsigned k = i / 2 * 4 + half * 2 + i % 2;
    auto code = static_cast<uint16_t>(
        getCode(Element::F16, static_cast<float>(getValue(type, codes, k))));
    std::memcpy(out + 2 * i, &code, 2);
  }
}

void fp8emu::multiplyAccumulateAsHalf(const Operands &operands,
                                      float *accumulators) {
  static thread_local auto converted = std::make_unique<Operands>();
  converted->typeA = converted->typeB = Element::F16;
  converted->columns = operands.columns;
  for (unsigned half : {0u, 1u}) {
    for (unsigned m = 0; m < kWarpRows; ++m)
      convertHalf(operands.typeA, operands.a[m], half, converted->a[m]);
    for (unsigned n = 0; n < operands.columns; ++n)
      convertHalf(operands.typeB, operands.b[n], half, converted->b[n]);
    multiplyAccumulate(*converted, /*fresh=*/false, accumulators);
  }
}
