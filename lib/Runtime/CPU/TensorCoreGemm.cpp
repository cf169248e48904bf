//===- TensorCoreGemm.cpp - Products with a GPU's sums --------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Instructions along K, and what becomes of their sums.
//
//===----------------------------------------------------------------------===//

#include "TensorCoreInstruction.h"
#include "fp8/Runtime/Parallel.h"
#include "fp8/Runtime/Program.h"

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <memory>

using namespace fp8emu;
using namespace fp8rt::cpu;

static constexpr int64_t kLanes = 32;

namespace {
struct Arguments {
  TensorCoreOperands operands;
  const fp8rt_memref3d_f32 &c;
  int64_t blockK = 0, parts = 0;
  bool isPromoted = false;
};

/// A tile of the result.
class TileAccumulators {
public:
  TileAccumulators(const Arguments &arguments, const TensorCoreTile &tile)
      : arguments(arguments), tile(tile),
        instruction(
            TensorCoreInstruction::create(arguments.operands, this->tile)) {}

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

  const Arguments &arguments;
  TensorCoreTile tile;
  std::unique_ptr<TensorCoreInstruction> instruction;
};
} // namespace

void TileAccumulators::multiply(int64_t k, bool fresh, Values &values) {
  instruction->load(k);
  for (int64_t m = 0; m < tile.rows; ++m)
    instruction->addRow(m, fresh, values.at[m]);
}

void TileAccumulators::sumPart(int64_t begin, int64_t end, Values &values) {
  auto storage = std::make_unique<Values>();
  Values &sums = *storage;
  values = Values();
  for (int64_t block = begin; block < end; ++block) {
    int64_t first = block * arguments.blockK;
    int64_t last =
        std::min(first + arguments.blockK, arguments.operands.a.sizes[2]);
    // What is left of a block is zeros, which change nothing.
    for (int64_t k = first; k < last; k += instruction->getCount())
      multiply(k,
               arguments.isPromoted ? k == first : block == begin && k == first,
               arguments.isPromoted ? sums : values);
    if (arguments.isPromoted)
      for (int64_t m = 0; m < tile.rows; ++m)
        for (int64_t n = 0; n < tile.columns; ++n)
          values.at[m][n] += sums.at[m][n];
  }
}

void TileAccumulators::compute() {
  auto storage = std::make_unique<Values[]>(2);
  Values &total = storage[0], &part = storage[1];
  int64_t blocks =
      (arguments.operands.a.sizes[2] + arguments.blockK - 1) / arguments.blockK;
  for (int64_t i = 0; i < arguments.parts; ++i) {
    sumPart(i * blocks / arguments.parts, (i + 1) * blocks / arguments.parts,
            part);
    for (int64_t m = 0; m < tile.rows; ++m)
      for (int64_t n = 0; n < tile.columns; ++n)
        total.at[m][n] += part.at[m][n];
  }
  Matrix c(arguments.c, tile.batch);
  for (int64_t m = 0; m < tile.rows; ++m)
    for (int64_t n = 0; n < tile.columns; ++n)
      c.at(tile.row + m, tile.column + n) += total.at[m][n];
}

/// Lanes and their sums.
static void sumLanes(const Arguments &arguments, const TensorCoreTile &tile) {
  Matrix a(arguments.operands.a, tile.batch),
      b(arguments.operands.b, tile.batch), c(arguments.c, tile.batch);
  for (int64_t m = tile.row; m < tile.row + tile.rows; ++m)
    for (int64_t n = tile.column; n < tile.column + tile.columns; ++n) {
      float lanes[kLanes] = {};
      for (int64_t k = 0; k < arguments.operands.a.sizes[2]; ++k)
        lanes[k % kLanes] += a.at(m, k) * b.at(n, k);
      for (int64_t distance = kLanes / 2; distance > 0; distance /= 2)
        for (int64_t lane = 0; lane < distance; ++lane)
          lanes[lane] += lanes[lane + distance];
      c.at(m, n) += lanes[0];
    }
}

/// Calls `compute` for each tile of the result.
template <void (*compute)(const Arguments &, const TensorCoreTile &)>
static void forEachTile(const Arguments &arguments) {
  const int64_t *sizes = arguments.c.sizes;
  if (sizes[1] == 0 || sizes[2] == 0 || arguments.operands.a.sizes[2] == 0)
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

static void computeTile(const Arguments &arguments,
                        const TensorCoreTile &tile) {
  TileAccumulators(arguments, tile).compute();
}

namespace {
/// The types of a product's operands.
struct Types {
  Element a, b;
};
} // namespace

/// Takes enumerators of fp8rt_tensor_core_type that go together: all of 8 bits
/// or less, as far as `takes` has them, or one type twice. Others fail.
static Types takeTypes(int32_t typeA, int32_t typeB, bool (*takes)(Element)) {
  char message[128];
  for (int32_t type : {typeA, typeB})
    if (type < 0 || type >= int32_t(std::size(fp8rt::kTensorCoreFormats)) ||
        !takes(static_cast<Element>(type))) {
      std::snprintf(message, sizeof(message),
                    "expected a type that the tensor core takes, but got %d of "
                    "fp8rt_tensor_core_type",
                    static_cast<int>(type));
      fp8rt_program_fail(message);
    }
  auto a = static_cast<Element>(typeA), b = static_cast<Element>(typeB);
  if (a != b && (getBytes(a) > 1 || getBytes(b) > 1)) {
    std::snprintf(message, sizeof(message),
                  "expected types that go together, but got %s and %s",
                  getFormat(a).name, getFormat(b).name);
    fp8rt_program_fail(message);
  }
  return {a, b};
}

extern "C" void _mlir_ciface_fp8rt_gemm_tensor_core(
    const fp8rt_memref3d_f32 *a, const fp8rt_memref3d_f32 *b,
    fp8rt_memref3d_f32 *c, int32_t type_a, int32_t type_b, int32_t block_k,
    int32_t parts, int32_t promoted) {
  Types types = takeTypes(type_a, type_b,
                          [](Element type) { return getBits(type) >= 8; });
  bool isWide = getBytes(types.a) > 1;
  forEachTile<computeTile>(
      {{*a, *b, types.a, types.b, isWide}, *c, block_k, parts, promoted != 0});
}

extern "C" void _mlir_ciface_fp8rt_gemm_mma(const fp8rt_memref3d_f32 *a,
                                            const fp8rt_memref3d_f32 *b,
                                            fp8rt_memref3d_f32 *c,
                                            int32_t type_a, int32_t type_b,
                                            int32_t block_k, int32_t parts,
                                            int32_t promoted) {
  Types types = takeTypes(type_a, type_b,
                          [](Element type) { return getBits(type) >= 8; });
  bool isWide = getBytes(types.a) > 1;
  TensorCoreOperands operands{*a, *b, types.a, types.b, isWide};
  operands.inHalves = !isWide;
  forEachTile<computeTile>({operands, *c, block_k, parts, promoted != 0});
}

extern "C" void _mlir_ciface_fp8rt_gemm_tcgen05(const fp8rt_memref3d_f32 *a,
                                                const fp8rt_memref3d_f32 *b,
                                                fp8rt_memref3d_f32 *c,
                                                int32_t type_a, int32_t type_b,
                                                int32_t block_k,
                                                int32_t parts) {
  Types types = takeTypes(type_a, type_b, [](Element) { return true; });
  forEachTile<computeTile>(
      {{*a, *b, types.a, types.b, /*isWide=*/true}, *c, block_k, parts});
}

extern "C" void _mlir_ciface_fp8rt_gemm_tcgen05_scaled(
    const fp8rt_memref3d_f32 *a, const fp8rt_memref3d_f32 *b,
    const fp8rt_memref3d_f32 *factors_a, const fp8rt_memref3d_f32 *factors_b,
    fp8rt_memref3d_f32 *c, int32_t type_a, int32_t type_b, int32_t factor_k,
    int32_t block_k, int32_t parts) {
  // Instructions of 4 bits alone take twice as much of K.
  bool isFP4 = type_a == FP8RT_TENSOR_CORE_E2M1;
  Types types = takeTypes(
      type_a, type_b,
      isFP4 ? [](Element type) { return getBits(type) == 4; }
            : [](Element type) {
                return getBytes(type) == 1 && getBits(type) > 4;
              });
  forEachTile<computeTile>({{*a, *b, types.a, types.b, /*isWide=*/true,
                             factors_a, factors_b, factor_k},
                            *c,
                            block_k,
                            parts});
}

extern "C" void _mlir_ciface_fp8rt_gemm_warp(const fp8rt_memref3d_f32 *a,
                                             const fp8rt_memref3d_f32 *b,
                                             fp8rt_memref3d_f32 *c) {
  forEachTile<sumLanes>(
      {{*a, *b, Element::TF32, Element::TF32, /*isWide=*/true}, *c});
}
