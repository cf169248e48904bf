//===- BlockDot.h - Sums of tcgen05.mma -------------------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// As Dot.h has them, with 25 bits of fraction and, of results in f32, 23 of
// mantissa. Factors of blocks that are powers of two enter the exponents of
// products. Of FP4 the products of 16 are added without error; each such sum
// times its factors is one term, aligned by the factors' exponents alone, with
// 35 bits of fraction. docs/Emulator.md says what is known of that.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_TENSORCORE_BLOCKDOT_H
#define FP8_LIB_TENSORCORE_BLOCKDOT_H

#include "Sums.h"

namespace fp8emu {

enum class ScaleType : uint8_t { None, UE8M0, UE4M3 };

constexpr unsigned kMaxFactors = 4; /* of a row, in an instruction */
constexpr unsigned kRowBytes = 64;

struct BlockProducts {
  Element typeA, typeB;
  bool negate = false;   /* all products */
  unsigned products = 0; /* of a sum: 64 of FP4 */
  unsigned columns = 0;
  ScaleType scale = ScaleType::None;
  unsigned factors = 0; /* of a row */
  bool half = false;    /* results in f16 */
  bool exact = true;    /* or of f32, one product after the other */
};

/// The columns of an instruction, and rows times them.
class BlockSums final : SpecialTerms {
public:
  explicit BlockSums(const BlockProducts &products) : products(products) {}

  /// Elements as loadNumber takes them; of less than 8 bits one a byte. Both
  /// stay where they are.
  void setColumns(const uint8_t (*codes)[kRowBytes],
                  const uint8_t (*factors)[kMaxFactors]);
  /// sums[n] = that, or 0 if `fresh`, plus the row times column n, of columns
  /// from `first` to before `end`, multiples of kColumnBlock.
  void addRow(const uint8_t *codes, const uint8_t *factors, bool fresh,
              unsigned first, unsigned end, float *sums);

private:
  double sum(unsigned row, unsigned column, float c) const override;
  double getScale(unsigned column, unsigned k) const;
  void decodeRow();
  void addHalves(bool fresh, unsigned first, unsigned end, float *sums);
  void addGroups(bool fresh, unsigned first, unsigned end, float *sums);
  void addPlain(bool fresh, unsigned first, unsigned end, float *sums);
  bool isFP4() const { return products.products == kRowBytes; }

  struct Factor {
    int32_t significand = 1, exponent = 0;
    bool special = false;
  };
  Factor getFactor(uint8_t code) const;

  const BlockProducts products;
  const uint8_t (*columnCodes)[kRowBytes] = nullptr;
  const uint8_t (*columnFactors)[kMaxFactors] = nullptr;
  const uint8_t *rowCodes = nullptr, *rowFactors = nullptr;
  DecodedColumns columns;
  DecodedRow row;
  /// FP4's columns: twice the values, and which of them are not 0.
  int8_t columnHalves[kMaxColumns][kRowBytes];
  uint64_t columnUsed[kMaxColumns];
};

} // namespace fp8emu

#endif // FP8_LIB_TENSORCORE_BLOCKDOT_H
