//===- TensorCoreGemm.cpp - Products with a GPU's sums --------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The emulator's rule of sums (lib/Emulator/Tensor/Sums.h), over matrices of
// any strides.
//
//===----------------------------------------------------------------------===//

#include "Tensor/Sums.h"
#include "fp8/Runtime/Gemm.h"
#include "fp8/Runtime/Parallel.h"

#include <algorithm>
#include <cmath>
#include <memory>

using namespace fp8emu;

namespace {
/// Rows and columns of the result that are worked on together.
constexpr int64_t kTileRows = 16, kTileColumns = kMaxColumns;
constexpr int64_t kLanes = 32;

/// One matrix of a batch.
struct Matrix {
  float *data;
  int64_t rowStride, columnStride;

  Matrix(const fp8rt_memref3d_f32 &memref, int64_t batch)
      : data(memref.data + memref.offset + batch * memref.strides[0]),
        rowStride(memref.strides[1]), columnStride(memref.strides[2]) {}
  float &at(int64_t row, int64_t column) const {
    return data[row * rowStride + column * columnStride];
  }
};

struct Arguments {
  const fp8rt_memref3d_f32 &a, &b, &c;
  Element typeA, typeB;
  int64_t blockK, parts;
  bool isPromoted;
};

/// Where a tile of the result is.
struct Place {
  int64_t batch, row, column, rows, columns;
};

/// Operands of an instruction, as they are and as integers.
struct Step final : SpecialTerms {
  float a[kTileRows][kMaxProducts];
  float b[kTileColumns][kMaxProducts];
  DecodedRow rows[kTileRows];
  DecodedColumns columns;
  unsigned count;

  double sum(unsigned row, unsigned column, float c) const override {
    double total = std::isfinite(c) ? 0 : c;
    for (unsigned k = 0; k < count; ++k) {
      double product = double{a[row][k]} * b[column][k];
      if (!std::isfinite(product))
        total += product;
    }
    return total;
  }
};

/// A tile of the result.
class Tile {
public:
  Tile(const Arguments &arguments, const Place &place)
      : arguments(arguments), place(place), a(arguments.a, place.batch),
        b(arguments.b, place.batch), isWide(arguments.typeA > Element::E5M2),
        count(32 / getBytes(arguments.typeA)), step(new Step()) {
    step->count = count;
  }

  /// Adds the sums to C.
  void compute();

private:
  struct Values {
    float at[kTileRows][kTileColumns];
  };

  /// values = those of a part of K, from a block on to another one.
  void sumPart(int64_t begin, int64_t end, Values &values);
  /// values = that (or 0, if `fresh`) plus products of K from `k` on.
  void multiply(int64_t k, bool fresh, Values &values);
  void load(int64_t k);

  const Arguments &arguments;
  const Place &place;
  Matrix a, b;
  bool isWide;
  unsigned count; /* products of an instruction */
  std::unique_ptr<Step> step;
};
} // namespace

void Tile::load(int64_t k) {
  int64_t inside = std::min<int64_t>(count, arguments.a.sizes[2] - k);
  // Products are moved up to where they are cut off.
  int guard = (isWide ? kWideFraction : kNarrowFraction) -
              static_cast<int>(getMantissaBits(arguments.typeA) +
                               getMantissaBits(arguments.typeB));
  for (int64_t m = 0; m < place.rows; ++m) {
    DecodedRow &row = step->rows[m];
    row.special = false;
    for (int64_t i = 0; i < count; ++i) {
      float value = i < inside ? a.at(place.row + m, k + i) : 0;
      Number number = getNumber(arguments.typeA, value);
      step->a[m][i] = value;
      row.significand[i] = number.significand * (1 << guard);
      row.exponent[i] = number.exponent;
      row.special |= number.special;
    }
  }
  for (int64_t n = 0; n < place.columns; ++n) {
    step->columns.special[n] = false;
    for (int64_t i = 0; i < count; ++i) {
      float value = i < inside ? b.at(place.column + n, k + i) : 0;
      Number number = getNumber(arguments.typeB, value);
      step->b[n][i] = value;
      step->columns.significand[i][n] = number.significand;
      step->columns.exponent[i][n] = number.exponent;
      step->columns.special[n] |= number.special;
    }
  }
}

void Tile::multiply(int64_t k, bool fresh, Values &values) {
  load(k);
  Products products{step->columns, count, fresh, *step};
  for (int64_t m = 0; m < place.rows; ++m)
    for (int64_t n = 0; n < place.columns; n += kColumnBlock) {
      auto row = static_cast<unsigned>(m), column = static_cast<unsigned>(n);
      if (isWide)
        products.addWide(step->rows[m], row, column, &values.at[m][n]);
      else
        products.addNarrow(step->rows[m], row, column, &values.at[m][n]);
    }
}

void Tile::sumPart(int64_t begin, int64_t end, Values &values) {
  auto storage = std::make_unique<Values>();
  Values &sums = *storage;
  values = Values();
  for (int64_t block = begin; block < end; ++block) {
    int64_t first = block * arguments.blockK;
    int64_t last = std::min(first + arguments.blockK, arguments.a.sizes[2]);
    // What is left of a block is zeros, which change nothing.
    for (int64_t k = first; k < last; k += count)
      multiply(k,
               arguments.isPromoted ? k == first : block == begin && k == first,
               arguments.isPromoted ? sums : values);
    if (arguments.isPromoted)
      for (int64_t m = 0; m < place.rows; ++m)
        for (int64_t n = 0; n < place.columns; ++n)
          values.at[m][n] += sums.at[m][n];
  }
}

void Tile::compute() {
  auto storage = std::make_unique<Values[]>(2);
  Values &total = storage[0], &part = storage[1];
  int64_t blocks =
      (arguments.a.sizes[2] + arguments.blockK - 1) / arguments.blockK;
  for (int64_t i = 0; i < arguments.parts; ++i) {
    sumPart(i * blocks / arguments.parts, (i + 1) * blocks / arguments.parts,
            part);
    for (int64_t m = 0; m < place.rows; ++m)
      for (int64_t n = 0; n < place.columns; ++n)
        total.at[m][n] += part.at[m][n];
  }
  Matrix c(arguments.c, place.batch);
  for (int64_t m = 0; m < place.rows; ++m)
    for (int64_t n = 0; n < place.columns; ++n)
      c.at(place.row + m, place.column + n) += total.at[m][n];
}

/// Lanes and their sums.
static void sumLanes(const Arguments &arguments, const Place &place) {
  Matrix a(arguments.a, place.batch), b(arguments.b, place.batch),
      c(arguments.c, place.batch);
  for (int64_t m = place.row; m < place.row + place.rows; ++m)
    for (int64_t n = place.column; n < place.column + place.columns; ++n) {
      float lanes[kLanes] = {};
      for (int64_t k = 0; k < arguments.a.sizes[2]; ++k)
        lanes[k % kLanes] += a.at(m, k) * b.at(n, k);
      for (int64_t distance = kLanes / 2; distance > 0; distance /= 2)
        for (int64_t lane = 0; lane < distance; ++lane)
          lanes[lane] += lanes[lane + distance];
      c.at(m, n) += lanes[0];
    }
}

/// Calls `compute` for each tile of the result.
template <void (*compute)(const Arguments &, const Place &)>
static void forEachTile(const Arguments &arguments) {
  const int64_t *sizes = arguments.c.sizes;
  if (sizes[1] == 0 || sizes[2] == 0 || arguments.a.sizes[2] == 0)
    return;
  auto body = [](int64_t begin, int64_t end, void *context) {
    const auto &arguments = *static_cast<const Arguments *>(context);
    const int64_t *sizes = arguments.c.sizes;
    int64_t across = (sizes[2] + kTileColumns - 1) / kTileColumns;
    int64_t down = (sizes[1] + kTileRows - 1) / kTileRows;
    for (int64_t i = begin; i < end; ++i) {
      int64_t row = i / across % down * kTileRows,
              column = i % across * kTileColumns;
      compute(arguments, {i / across / down, row, column,
                          std::min(kTileRows, sizes[1] - row),
                          std::min(kTileColumns, sizes[2] - column)});
    }
  };
  int64_t across = (sizes[2] + kTileColumns - 1) / kTileColumns;
  int64_t down = (sizes[1] + kTileRows - 1) / kTileRows;
  using Body = void (*)(int64_t, int64_t, void *);
  fp8rt_parallel_for(sizes[0] * down * across,
                     reinterpret_cast<void *>(static_cast<Body>(body)),
                     const_cast<Arguments *>(&arguments));
}

static void computeTile(const Arguments &arguments, const Place &place) {
  Tile(arguments, place).compute();
}

/// The other way around an enumerator of fp8rt_tensor_core_type.
static Element getElement(int32_t type) {
  switch (type) {
  case FP8RT_TENSOR_CORE_E5M2:
    return Element::E5M2;
  case FP8RT_TENSOR_CORE_F16:
    return Element::F16;
  case FP8RT_TENSOR_CORE_BF16:
    return Element::BF16;
  case FP8RT_TENSOR_CORE_TF32:
    return Element::TF32;
  default:
    return Element::E4M3;
  }
}

extern "C" void _mlir_ciface_fp8rt_gemm_tensor_core(
    const fp8rt_memref3d_f32 *a, const fp8rt_memref3d_f32 *b,
    fp8rt_memref3d_f32 *c, int32_t type_a, int32_t type_b, int32_t block_k,
    int32_t parts, int32_t promoted) {
  forEachTile<computeTile>({*a, *b, *c, getElement(type_a), getElement(type_b),
                            block_k, parts, promoted != 0});
}

extern "C" void _mlir_ciface_fp8rt_gemm_warp(const fp8rt_memref3d_f32 *a,
                                             const fp8rt_memref3d_f32 *b,
                                             fp8rt_memref3d_f32 *c) {
  forEachTile<sumLanes>(
      {*a, *b, *c, Element::TF32, Element::TF32, 0, 0, false});
}
