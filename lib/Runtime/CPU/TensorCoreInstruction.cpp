//===- TensorCoreInstruction.cpp - Sums of one instruction ----------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The emulator's rules of sums (lib/TensorCore), for operands in f32.
//
//===----------------------------------------------------------------------===//

#include "TensorCoreInstruction.h"

#include "TensorCore/BlockDot.h"
#include "TensorCore/Floats.h"

#include <algorithm>
#include <cmath>

using namespace fp8emu;
using namespace fp8rt::cpu;

int64_t TensorCoreInstruction::getInside(int64_t k) const {
  return std::clamp<int64_t>(operands.a.sizes[2] - k, 0, count);
}

/// Columns as they are worked on.
static unsigned getColumns(const TensorCoreTile &tile) {
  auto columns = static_cast<unsigned>(tile.columns);
  return (columns + kColumnBlock - 1) / kColumnBlock * kColumnBlock;
}

//===----------------------------------------------------------------------===//
// Without factors
//===----------------------------------------------------------------------===//

namespace {
/// Operands as they are and as integers.
class PlainInstruction final : public TensorCoreInstruction, SpecialTerms {
public:
  PlainInstruction(const TensorCoreOperands &operands,
                   const TensorCoreTile &tile)
      : TensorCoreInstruction(operands, tile,
                              (operands.inHalves ? 16 : 32) /
                                  getBytes(operands.typeA)) {}

  void load(int64_t k) override;
  void addRow(int64_t row, bool fresh, float *sums) override;

private:
  double sum(unsigned row, unsigned column, float c) const override;

  float valuesA[kTileRows][kMaxProducts];
  float valuesB[kTileColumns][kMaxProducts];
  DecodedRow rows[kTileRows];
  DecodedColumns columns = {};
};
} // namespace

double PlainInstruction::sum(unsigned row, unsigned column, float c) const {
  double total = std::isfinite(c) ? 0 : c;
  for (unsigned k = 0; k < count; ++k) {
    double product = double{valuesA[row][k]} * valuesB[column][k];
    if (!std::isfinite(product))
      total += product;
  }
  return total;
}

void PlainInstruction::load(int64_t k) {
  int64_t inside = getInside(k);
  // Products are moved up to where they are cut off.
  int guard = (operands.isWide ? kWideFraction : kNarrowFraction) -
              static_cast<int>(getMantissaBits(operands.typeA) +
                               getMantissaBits(operands.typeB));
  for (int64_t m = 0; m < tile.rows; ++m) {
    DecodedRow &row = rows[m];
    row.special = false;
    for (int64_t i = 0; i < count; ++i) {
      float value = i < inside ? a.at(tile.row + m, k + i) : 0;
      Number number = getNumber(operands.typeA, value);
      valuesA[m][i] = value;
      row.significand[i] = number.significand * (1 << guard);
      row.exponent[i] = number.exponent;
      row.special |= number.special;
    }
  }
  for (int64_t n = 0; n < tile.columns; ++n) {
    columns.special[n] = false;
    for (int64_t i = 0; i < count; ++i) {
      float value = i < inside ? b.at(tile.column + n, k + i) : 0;
      Number number = getNumber(operands.typeB, value);
      valuesB[n][i] = value;
      columns.significand[i][n] = number.significand;
      columns.exponent[i][n] = number.exponent;
      columns.special[n] |= number.special;
    }
  }
}

void PlainInstruction::addRow(int64_t row, bool fresh, float *sums) {
  Products products{columns, count, fresh, *this};
  auto number = static_cast<unsigned>(row);
  for (unsigned n = 0, end = getColumns(tile); n < end; n += kColumnBlock) {
    if (operands.isWide)
      products.addWide(rows[row], number, n, sums + n);
    else
      products.addNarrow(rows[row], number, n, sums + n);
  }
}

//===----------------------------------------------------------------------===//
// With factors
//===----------------------------------------------------------------------===//

/// Products with factors: 64 of 4 bits.
static unsigned getScaledCount(Element type) {
  return getBits(type) == 4 ? kRowBytes : 32;
}

static uint8_t getFactorCode(ScaleType type, float value) {
  if (type == ScaleType::UE4M3)
    return static_cast<uint8_t>(getCode(Element::E4M3, value));
  // 2^-127 is below the normal numbers of f32.
  return value != value ? 0xff : static_cast<uint8_t>(toBits(value) >> 23);
}

namespace {
/// Operands and factors as codes, which the emulator's rule takes.
class ScaledInstruction final : public TensorCoreInstruction {
public:
  ScaledInstruction(const TensorCoreOperands &operands,
                    const TensorCoreTile &tile)
      : TensorCoreInstruction(operands, tile, getScaledCount(operands.typeA)),
        factorsA(*operands.factorsA, tile.batch),
        factorsB(*operands.factorsB, tile.batch),
        sums(getProducts(operands, tile)) {}

  void load(int64_t k) override;
  void addRow(int64_t row, bool fresh, float *sums) override;

private:
  static BlockProducts getProducts(const TensorCoreOperands &operands,
                                   const TensorCoreTile &tile);
  static ScaleType getScaleType(const TensorCoreOperands &operands) {
    return operands.factorK == 16 ? ScaleType::UE4M3 : ScaleType::UE8M0;
  }
  /// A row of either operand, from `k` on.
  void loadRow(const Matrix &values, const Matrix &factors, Element type,
               int64_t row, int64_t k, uint8_t (&codes)[kRowBytes],
               uint8_t (&factorCodes)[kMaxFactors]) const;

  Matrix factorsA, factorsB;
  BlockSums sums;
  uint8_t codesA[kTileRows][kRowBytes] = {};
  uint8_t codesB[kTileColumns][kRowBytes] = {};
  uint8_t factorCodesA[kTileRows][kMaxFactors] = {};
  uint8_t factorCodesB[kTileColumns][kMaxFactors] = {};
};
} // namespace

BlockProducts ScaledInstruction::getProducts(const TensorCoreOperands &operands,
                                             const TensorCoreTile &tile) {
  BlockProducts products;
  products.typeA = operands.typeA;
  products.typeB = operands.typeB;
  products.products = getScaledCount(operands.typeA);
  products.columns = getColumns(tile);
  products.scale = getScaleType(operands);
  products.factors =
      products.products / static_cast<unsigned>(operands.factorK);
  return products;
}

void ScaledInstruction::loadRow(const Matrix &values, const Matrix &factors,
                                Element type, int64_t row, int64_t k,
                                uint8_t (&codes)[kRowBytes],
                                uint8_t (&factorCodes)[kMaxFactors]) const {
  // Zeros with a factor of 0, or the least one, count for nothing.
  int64_t inside = getInside(k);
  for (int64_t i = 0; i < count; ++i)
    codes[i] = i < inside
                   ? static_cast<uint8_t>(getCode(type, values.at(row, k + i)))
                   : 0;
  for (int64_t i = 0; i < count; i += operands.factorK)
    factorCodes[i / operands.factorK] =
        i < inside ? getFactorCode(getScaleType(operands),
                                   factors.at(row, (k + i) / operands.factorK))
                   : 0;
}

void ScaledInstruction::load(int64_t k) {
  for (int64_t m = 0; m < tile.rows; ++m)
    loadRow(a, factorsA, operands.typeA, tile.row + m, k, codesA[m],
            factorCodesA[m]);
  for (int64_t n = 0; n < tile.columns; ++n)
    loadRow(b, factorsB, operands.typeB, tile.column + n, k, codesB[n],
            factorCodesB[n]);
  sums.setColumns(codesB, factorCodesB);
}

void ScaledInstruction::addRow(int64_t row, bool fresh, float *out) {
  sums.addRow(codesA[row], factorCodesA[row], fresh, 0, getColumns(tile), out);
}

std::unique_ptr<TensorCoreInstruction>
TensorCoreInstruction::create(const TensorCoreOperands &operands,
                              const TensorCoreTile &tile) {
  if (operands.factorsA)
    return std::make_unique<ScaledInstruction>(operands, tile);
  return std::make_unique<PlainInstruction>(operands, tile);
}
