//===- GemmTest.cpp - Tests of the matrix product -------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Compares with a loop over elements. The values are small integers, of which
// f32 sums are exact in any order, so that results are compared for equality,
// and with them everything around the result in its buffer.
//
//===----------------------------------------------------------------------===//

#include "fp8/Runtime/Gemm.h"
#include "fp8/Runtime/Program.h"

#include "gtest/gtest.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <iterator>
#include <limits>
#include <random>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace {
using Triple = std::array<int64_t, 3>;

/// A batch of matrices in a buffer of its own.
struct Operand {
  std::vector<float> buffer;
  fp8rt_memref3d_f32 memref{};

  Operand(Triple sizes, Triple strides, int64_t offset) {
    int64_t last = offset;
    for (int dim = 0; dim < 3; ++dim) {
      memref.sizes[dim] = sizes[dim];
      memref.strides[dim] = strides[dim];
      last += std::max<int64_t>(sizes[dim] - 1, 0) * strides[dim];
    }
    buffer.resize(last + 1);
    memref.offset = offset;
    point();
  }
  Operand(const Operand &other) : buffer(other.buffer), memref(other.memref) {
    point();
  }

  void point() { memref.allocated = memref.data = buffer.data(); }
  float &at(int64_t i, int64_t j, int64_t k) {
    return buffer[memref.offset + i * memref.strides[0] +
                  j * memref.strides[1] + k * memref.strides[2]];
  }
  void fill(std::mt19937 &random) {
    for (float &value : buffer)
      value = float(int(random() % 9) - 4);
  }
};
} // namespace

/// Strides of `sizes` in memory order `order` (outermost first), with `padding`
/// elements after each of the two inner dimensions.
static Triple denseStrides(Triple sizes, Triple order, int64_t padding) {
  Triple strides;
  int64_t stride = 1;
  for (int position = 2; position >= 0; --position) {
    strides[order[position]] = stride;
    stride *= std::max<int64_t>(sizes[order[position]], 1) + padding;
  }
  return strides;
}

static void expectProduct(Operand a, Operand b, Operand c) {
  Operand expected = c;
  for (int64_t i = 0; i < c.memref.sizes[0]; ++i)
    for (int64_t m = 0; m < c.memref.sizes[1]; ++m)
      for (int64_t n = 0; n < c.memref.sizes[2]; ++n)
        for (int64_t k = 0; k < a.memref.sizes[2]; ++k)
          expected.at(i, m, n) += a.at(i, m, k) * b.at(i, n, k);
  _mlir_ciface_fp8rt_gemm_f32(&a.memref, &b.memref, &c.memref);
  EXPECT_EQ(c.buffer, expected.buffer);
}

static void expectProduct(Operand &a, Operand &b, Operand &c,
                          std::mt19937 &random) {
  a.fill(random);
  b.fill(random);
  c.fill(random);
  expectProduct(a, b, c);
}

static const Triple orders[] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
                                {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};

TEST(GemmTest, AnyOrderOfDimensionsInMemory) {
  std::mt19937 random(1);
  for (const Triple &orderA : orders)
    for (const Triple &orderB : orders)
      for (const Triple &orderC : orders) {
        Triple sizeA{3, 5, 7}, sizeB{3, 6, 7}, sizeC{3, 5, 6};
        Operand a(sizeA, denseStrides(sizeA, orderA, 0), 0);
        Operand b(sizeB, denseStrides(sizeB, orderB, 0), 0);
        Operand c(sizeC, denseStrides(sizeC, orderC, 0), 0);
        expectProduct(a, b, c, random);
      }
}

TEST(GemmTest, RandomSizesStridesAndOffsets) {
  std::mt19937 random(2);
  const int64_t sizes[] = {0, 1, 2, 3, 8, 17, 33};
  auto pick = [&](auto &array) { return array[random() % std::size(array)]; };
  for (int repeat = 0; repeat < 400; ++repeat) {
    int64_t batch = random() % 4, m = pick(sizes), n = pick(sizes),
            k = pick(sizes);
    auto make = [&](Triple shape) {
      return Operand(shape, denseStrides(shape, pick(orders), random() % 3),
                     random() % 5);
    };
    Operand a = make({batch, m, k}), b = make({batch, n, k}),
            c = make({batch, m, n});
    SCOPED_TRACE(testing::Message() << "repetition " << repeat);
    expectProduct(a, b, c, random);
  }
}

TEST(GemmTest, StrideOfUnitDimensionMeansNothing) {
  std::mt19937 random(3);
  for (int64_t stride : {0, 1, 3, 1000}) {
    Operand a({1, 1, 9}, {stride, stride, 1}, 0);
    Operand b({1, 4, 9}, {stride, 9, 1}, 0);
    Operand c({1, 1, 4}, {stride, stride, 1}, 0);
    expectProduct(a, b, c, random);
    Operand column({1, 5, 1}, {stride, 2, stride}, 0);
    Operand row({1, 6, 1}, {stride, 3, stride}, 0);
    Operand outer({1, 5, 6}, {stride, 6, 1}, 0);
    expectProduct(column, row, outer, random);
  }
}

TEST(GemmTest, BroadcastBatch) {
  std::mt19937 random(4);
  Operand a({4, 5, 7}, {35, 7, 1}, 0), b({4, 6, 7}, {0, 7, 1}, 2),
      c({4, 5, 6}, {30, 6, 1}, 0);
  expectProduct(a, b, c, random);
}

TEST(GemmTest, BroadcastRowsAndColumns) {
  std::mt19937 random(5);
  Operand a({2, 5, 7}, {7, 0, 1}, 0), b({2, 6, 7}, {6, 1, 0}, 0),
      c({2, 5, 6}, {30, 6, 1}, 0);
  expectProduct(a, b, c, random);
  Operand scalar({2, 5, 7}, {0, 0, 0}, 1);
  expectProduct(scalar, b, c, random);
}

TEST(GemmTest, OverlappingWindows) {
  std::mt19937 random(6);
  Operand a({1, 20, 5}, {0, 1, 1}, 0), b({1, 6, 5}, {30, 5, 1}, 0),
      c({1, 20, 6}, {120, 6, 1}, 0);
  expectProduct(a, b, c, random);
}

TEST(GemmTest, LargeEnoughForThreads) {
  std::mt19937 random(7);
  Operand a({1, 300, 511}, {0, 511, 1}, 0), b({1, 260, 511}, {0, 1, 260}, 0),
      c({1, 300, 260}, {0, 1, 300}, 0);
  expectProduct(a, b, c, random);
}

TEST(GemmTest, NaNAndInfPropagate) {
  const float inf = std::numeric_limits<float>::infinity();
  Operand a({1, 3, 2}, {6, 2, 1}, 0), b({1, 2, 2}, {4, 2, 1}, 0),
      c({1, 3, 2}, {6, 2, 1}, 0);
  a.buffer = {NAN, 0, inf, 1, 1, 1};
  b.buffer = {1, 1, 0, 1};
  _mlir_ciface_fp8rt_gemm_f32(&a.memref, &b.memref, &c.memref);
  EXPECT_TRUE(std::isnan(c.at(0, 0, 0)));
  EXPECT_TRUE(std::isnan(c.at(0, 0, 1))) << "NaN * 0";
  EXPECT_EQ(c.at(0, 1, 0), inf);
  EXPECT_TRUE(std::isnan(c.at(0, 1, 1))) << "Inf * 0";
  EXPECT_EQ(c.at(0, 2, 0), 2);
  EXPECT_EQ(c.at(0, 2, 1), 1);
}

/// The sums of these values are not exact.
TEST(GemmTest, OrderedSums) {
  const char *sums = std::getenv("FP8_CPU_SUMS");
  if (!sums || std::string(sums) != "ordered")
    GTEST_SKIP() << "FP8_CPU_SUMS=ordered is not in the environment";
  std::mt19937 random(8);
  std::normal_distribution<float> normal;
  for (Triple size : {Triple{1, 1, 700}, {5, 3, 31}, {33, 17, 513}}) {
    Operand a({1, size[0], size[2]}, {0, 1, size[0]}, 0),
        b({1, size[1], size[2]}, {0, size[2], 1}, 0),
        c({1, size[0], size[1]}, {0, size[1], 1}, 0);
    for (Operand *operand : {&a, &b, &c})
      for (float &value : operand->buffer)
        value = normal(random);
    expectProduct(a, b, c);
  }
}

TEST(GemmTest, WithoutTermsResultStays) {
  Operand a({1, 2, 0}, {1, 1, 1}, 0), b({1, 2, 0}, {1, 1, 1}, 0),
      c({1, 2, 2}, {4, 2, 1}, 0);
  c.buffer = {NAN, 1, -0.0f, 3};
  _mlir_ciface_fp8rt_gemm_f32(&a.memref, &b.memref, &c.memref);
  EXPECT_TRUE(std::isnan(c.at(0, 0, 0)));
  EXPECT_EQ(c.at(0, 0, 1), 1);
  EXPECT_TRUE(std::signbit(c.at(0, 1, 0)));
  EXPECT_EQ(c.at(0, 1, 1), 3);
}

//===----------------------------------------------------------------------===//
// A GPU's sums
//===----------------------------------------------------------------------===//

/// A row by a column, of so many elements.
static Operand makeRow(const std::vector<float> &values) {
  Operand row({1, 1, static_cast<int64_t>(values.size())}, {0, 0, 1}, 0);
  row.buffer = values;
  row.point();
  return row;
}

static float sumOnTensorCore(std::vector<float> a, std::vector<float> b,
                             fp8rt_tensor_core_type type, int32_t blockK,
                             int32_t parts, bool promoted) {
  Operand rowA = makeRow(a), rowB = makeRow(b), sum = makeRow({0});
  _mlir_ciface_fp8rt_gemm_tensor_core(&rowA.memref, &rowB.memref, &sum.memref,
                                      type, type, blockK, parts, promoted);
  return sum.buffer[0];
}

static float sumOnBlackwell(std::vector<float> a, std::vector<float> b,
                            fp8rt_tensor_core_type type) {
  Operand rowA = makeRow(a), rowB = makeRow(b), sum = makeRow({0});
  _mlir_ciface_fp8rt_gemm_tcgen05(&rowA.memref, &rowB.memref, &sum.memref, type,
                                  type, 128, /*parts=*/1);
  return sum.buffer[0];
}

/// Sums elements of E2M1 with factors of 16, or of E4M3 with those of 32.
static float sumScaled(std::vector<float> a, std::vector<float> b,
                       std::vector<float> factorsA, std::vector<float> factorsB,
                       int32_t factorK, int32_t parts = 1) {
  Operand rowA = makeRow(a), rowB = makeRow(b), sum = makeRow({0});
  Operand ofA = makeRow(factorsA), ofB = makeRow(factorsB);
  bool isFP4 = factorK == 16;
  int32_t type = isFP4 ? FP8RT_TENSOR_CORE_E2M1 : FP8RT_TENSOR_CORE_E4M3;
  _mlir_ciface_fp8rt_gemm_tcgen05_scaled(
      &rowA.memref, &rowB.memref, &ofA.memref, &ofB.memref, &sum.memref, type,
      type, factorK, isFP4 ? 256 : 128, parts);
  return sum.buffer[0];
}

/// So many elements of 0, but for some.
static std::vector<float>
makeSparse(size_t count, std::initializer_list<std::pair<size_t, float>> some) {
  std::vector<float> values(count, 0.0f);
  for (auto [index, value] : some)
    values[index] = value;
  return values;
}

TEST(TensorCoreGemmTest, CutsTermsOffBelowTheLargest) {
  // 1 and -2^-14 are of one instruction: 13 bits below 1 nothing is left.
  auto a = makeSparse(32, {{0, 1}, {1, -0x1p-7f}});
  auto b = makeSparse(32, {{0, 1}, {1, 0x1p-7f}});
  EXPECT_EQ(sumOnTensorCore(a, b, FP8RT_TENSOR_CORE_E5M2, 128, 1, false), 1);
  // A tensor core keeps more of types of 16 bits.
  EXPECT_EQ(sumOnTensorCore(a, b, FP8RT_TENSOR_CORE_BF16, 64, 1, false),
            1 - 0x1p-14f);
}

TEST(TensorCoreGemmTest, KeepsMoreOnBlackwell) {
  auto a = makeSparse(32, {{0, 1}, {1, -0x1p-7f}});
  auto b = makeSparse(32, {{0, 1}, {1, 0x1p-7f}});
  EXPECT_EQ(sumOnBlackwell(a, b, FP8RT_TENSOR_CORE_E5M2), 1 - 0x1p-14f);
  // 25 bits below 1, but 23 of the result: toward zero.
  a = makeSparse(32, {{0, 1}, {1, -0x1p-12f}});
  b = makeSparse(32, {{0, 1}, {1, 0x1p-13f}});
  EXPECT_EQ(sumOnBlackwell(a, b, FP8RT_TENSOR_CORE_E5M2), 1 - 0x1p-24f);
  b[1] = 0x1p-14f;
  EXPECT_EQ(sumOnBlackwell(a, b, FP8RT_TENSOR_CORE_E5M2), 1);
}

TEST(TensorCoreGemmTest, MultipliesFactorsOfBlocks) {
  // Powers of two are within the exponents: 2^-14 beside 1 stays, and 2^-26
  // does not.
  auto a = makeSparse(64, {{0, 1}, {32, -1}}), b = makeSparse(64, {{0, 1}});
  b[32] = 1;
  EXPECT_EQ(sumScaled(a, b, {1, 0x1p-7f}, {1, 0x1p-7f}, 32), 1 - 0x1p-14f);
  EXPECT_EQ(sumScaled(a, b, {1, 0x1p-13f}, {1, 0x1p-13f}, 32), 1);
  // Beyond the numbers of f32 between two factors.
  EXPECT_EQ(sumScaled(a, b, {0x1p127f, 0x1p-127f}, {0x1p-127f, 0x1p127f}, 32),
            0);
  // Those of 16 have mantissas; of the sign nothing is known to them.
  EXPECT_EQ(sumScaled(makeSparse(64, {{0, 6}, {16, 0.5f}}),
                      makeSparse(64, {{0, 1.5f}, {16, -1}}), {1.25f, 448, 0, 0},
                      {-1.5f, 0x1p-9f, 0, 0}, 16),
            9 * 1.25f * 1.5f - 0.5f * 448 * 0x1p-9f);
  // The sum of 16 products is exact, and aligned by its factors alone: one of
  // 0 leaves nothing 35 bits below them.
  a = makeSparse(64, {{0, 6}, {1, 6}, {16, 0.5f}});
  b = makeSparse(64, {{0, 6}, {1, -6}, {16, 0.5f}});
  EXPECT_EQ(sumScaled(a, b, {1, 0x1p-9f, 0, 0}, {1, 0x1p-9f, 0, 0}, 16),
            0x1p-20f);
  EXPECT_EQ(sumScaled(a, b, {448, 0x1p-9f, 0, 0}, {448, 0x1p-9f, 0, 0}, 16), 0);
}

/// Sums elements of types of 8 bits or less with one factor of 32.
static float sumOf(int32_t typeA, int32_t typeB, std::vector<float> a,
                   std::vector<float> b) {
  Operand rowA = makeRow(a), rowB = makeRow(b), sum = makeRow({0});
  Operand ofA = makeRow({2}), ofB = makeRow({0.5f});
  _mlir_ciface_fp8rt_gemm_tcgen05_scaled(&rowA.memref, &rowB.memref,
                                         &ofA.memref, &ofB.memref, &sum.memref,
                                         typeA, typeB, 32, 128, /*parts=*/1);
  return sum.buffer[0];
}

TEST(TensorCoreGemmTest, TakesSixBits) {
  // All that the types have, subnormal numbers and the largest ones too.
  for (auto [type, least, most] :
       {std::tuple{FP8RT_TENSOR_CORE_E2M3, 0.125f, 7.5f},
        {FP8RT_TENSOR_CORE_E3M2, 0.0625f, 28.0f},
        {FP8RT_TENSOR_CORE_E4M3, 0x1p-9f, 448.0f},
        {FP8RT_TENSOR_CORE_E5M2, 0x1p-16f, 57344.0f}}) {
    auto a = makeSparse(32, {{3, least}}), b = makeSparse(32, {{3, -least}});
    EXPECT_EQ(sumOf(type, type, a, b), -least * least);
    a[3] = b[3] = most;
    EXPECT_EQ(sumOf(type, type, a, b), most * most);
    // Beside another type.
    b[3] = 1.5f;
    EXPECT_EQ(sumOf(type, FP8RT_TENSOR_CORE_E4M3, a, b), most * 1.5f);
    EXPECT_EQ(sumOnBlackwell(a, b, type), most * 1.5f);
  }
}

/// Why a product fails; empty if it does not.
static std::string getFailure(int32_t typeA, int32_t typeB, bool isScaled) {
  struct Product {
    int32_t typeA, typeB;
    bool isScaled;
    Operand a, b, sum, factors;
  } product = {typeA,
               typeB,
               isScaled,
               makeRow(std::vector<float>(64)),
               makeRow(std::vector<float>(64)),
               makeRow({0}),
               makeRow({1, 1})};
  fp8rt_program_function function = {};
  // Nothing in it is destroyed when it gives up.
  function.invoke = [](void **arguments) {
    auto &p = *static_cast<Product *>(arguments[0]);
    if (p.isScaled)
      _mlir_ciface_fp8rt_gemm_tcgen05_scaled(
          &p.a.memref, &p.b.memref, &p.factors.memref, &p.factors.memref,
          &p.sum.memref, p.typeA, p.typeB, 32, 128, 1);
    else
      _mlir_ciface_fp8rt_gemm_tensor_core(
          &p.a.memref, &p.b.memref, &p.sum.memref, p.typeA, p.typeB, 128, 1, 0);
  };
  void *arguments[] = {&product};
  return fp8rt_program_invoke(&function, arguments) ? fp8rt_get_last_error()
                                                    : "";
}

TEST(TensorCoreGemmTest, RefusesTypesThatItDoesNotKnow) {
  constexpr int32_t e4m3 = FP8RT_TENSOR_CORE_E4M3,
                    e5m2 = FP8RT_TENSOR_CORE_E5M2,
                    e2m1 = FP8RT_TENSOR_CORE_E2M1, f16 = FP8RT_TENSOR_CORE_F16;
  std::string unknown = "expected a type that the tensor core takes, but got ";
  std::string list = " of fp8rt_tensor_core_type";
  for (bool isScaled : {false, true}) {
    EXPECT_EQ(getFailure(e4m3, e5m2, isScaled), "");
    EXPECT_EQ(getFailure(e4m3, 17, isScaled), unknown + "17" + list);
    EXPECT_EQ(getFailure(-1, e4m3, isScaled), unknown + "-1" + list);
    EXPECT_EQ(getFailure(e4m3, e2m1, isScaled), unknown + "5" + list);
  }
  EXPECT_EQ(getFailure(e2m1, e2m1, true), "");
  EXPECT_EQ(getFailure(e2m1, e2m1, false), unknown + "5" + list);
  EXPECT_EQ(getFailure(e2m1, e4m3, true), unknown + "0" + list);
  EXPECT_EQ(getFailure(f16, f16, true), unknown + "2" + list);
  EXPECT_EQ(getFailure(f16, f16, false), "");
  EXPECT_EQ(getFailure(f16, e4m3, false),
            "expected types that go together, but got f16 and e4m3");
}

TEST(TensorCoreGemmTest, FactorsThatAreNaN) {
  float nan = std::numeric_limits<float>::quiet_NaN();
  // Whatever they are factors of.
  std::vector<float> zeros(64, 0);
  EXPECT_TRUE(std::isnan(sumScaled(zeros, zeros, {1, nan}, {1, 1}, 32)));
  EXPECT_TRUE(
      std::isnan(sumScaled(zeros, zeros, {1, 1, 1, 1}, {1, 1, 1, nan}, 16)));
  EXPECT_TRUE(std::isnan(
      sumScaled(makeSparse(64, {{3, nan}}), zeros, {1, 1}, {1, 1}, 32)));
}

TEST(TensorCoreGemmTest, PartsOfScaledSums) {
  // 1.5 * 2^-24 is cut off from 1, and rounded up by f32.
  auto a = makeSparse(256, {{0, 1}, {128, 1.5f}});
  auto b = makeSparse(256, {{0, 1}, {128, 1}});
  std::vector<float> factors(8, 1);
  factors[4] = 0x1p-12f;
  EXPECT_EQ(sumScaled(a, b, factors, factors, 32), 1);
  EXPECT_EQ(sumScaled(a, b, factors, factors, 32, 2), 1 + 0x1p-23f);
}

TEST(TensorCoreGemmTest, PromotesBlocks) {
  // The second block's term is lost in the tensor core, and not in f32.
  auto a = makeSparse(256, {{0, 1}, {128, 0x1p-7f}});
  auto b = makeSparse(256, {{0, 1}, {128, 0x1p-8f}});
  EXPECT_EQ(sumOnTensorCore(a, b, FP8RT_TENSOR_CORE_E5M2, 128, 1, false), 1);
  EXPECT_EQ(sumOnTensorCore(a, b, FP8RT_TENSOR_CORE_E5M2, 128, 1, true),
            1 + 0x1p-15f);
  // Neither are those of parts.
  EXPECT_EQ(sumOnTensorCore(a, b, FP8RT_TENSOR_CORE_E5M2, 128, 2, false),
            1 + 0x1p-15f);
}

TEST(TensorCoreGemmTest, IgnoresLowBitsOfTF32) {
  EXPECT_EQ(sumOnTensorCore({1 + 0x1p-11f}, {1}, FP8RT_TENSOR_CORE_TF32, 32, 1,
                            false),
            1);
}

TEST(TensorCoreGemmTest, InfinitiesAndNaNs) {
  float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(sumOnTensorCore({1, infinity}, {1, 1}, FP8RT_TENSOR_CORE_BF16, 64,
                            1, false),
            infinity);
  EXPECT_TRUE(std::isnan(sumOnTensorCore(
      {infinity, infinity}, {1, -1}, FP8RT_TENSOR_CORE_BF16, 64, 1, false)));
}

TEST(TensorCoreGemmTest, AnyShapeAndStrides) {
  // Small integers, whose sums are exact in any order.
  std::mt19937 random(1);
  for (auto [m, n, k] : {Triple{1, 1, 1}, Triple{17, 259, 33},
                         Triple{40, 300, 130}, Triple{3, 5, 0}}) {
    Triple sizesA{2, m, k}, sizesB{2, n, k}, sizesC{2, m, n};
    Operand a(sizesA, denseStrides(sizesA, {0, 2, 1}, 1), 3);
    Operand b(sizesB, denseStrides(sizesB, {0, 1, 2}, 2), 1);
    Operand c(sizesC, denseStrides(sizesC, {1, 0, 2}, 1), 2);
    a.fill(random);
    b.fill(random);
    c.fill(random);
    Operand expected = c, warp = c;
    for (int64_t i = 0; i < 2; ++i)
      for (int64_t row = 0; row < m; ++row)
        for (int64_t column = 0; column < n; ++column)
          for (int64_t at = 0; at < k; ++at)
            expected.at(i, row, column) +=
                a.at(i, row, at) * b.at(i, column, at);
    _mlir_ciface_fp8rt_gemm_tensor_core(&a.memref, &b.memref, &c.memref,
                                        FP8RT_TENSOR_CORE_E4M3,
                                        FP8RT_TENSOR_CORE_E5M2, 128, 2, 1);
    EXPECT_EQ(c.buffer, expected.buffer);
    _mlir_ciface_fp8rt_gemm_warp(&a.memref, &b.memref, &warp.memref);
    EXPECT_EQ(warp.buffer, expected.buffer);
  }
}

TEST(WarpGemmTest, AddsLanesInPairs) {
  // 1, 2^-24 (lane 1) and 2^-24 (lane 17): the last two meet first.
  Operand a = makeRow(makeSparse(32, {{0, 1}, {1, 0x1p-24f}, {17, 0x1p-24f}}));
  Operand b = makeRow(std::vector<float>(32, 1)), sum = makeRow({0});
  _mlir_ciface_fp8rt_gemm_warp(&a.memref, &b.memref, &sum.memref);
  EXPECT_EQ(sum.buffer[0], 1 + 0x1p-23f);
}
