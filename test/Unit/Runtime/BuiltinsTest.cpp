//===- BuiltinsTest.cpp - What compiled code calls ------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "gtest/gtest.h"

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

extern "C" float __truncsfbf2(float value);
extern "C" float __truncdfbf2(double value);
extern "C" void memrefCopy(int64_t elementSize, const void *source,
                           const void *destination);

//===----------------------------------------------------------------------===//
// Conversions
//===----------------------------------------------------------------------===//

static uint16_t getCode(float low) {
  uint32_t bits;
  std::memcpy(&bits, &low, sizeof(bits));
  return static_cast<uint16_t>(bits);
}

static float makeFloat(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

TEST(Builtins, EveryBFloatIsKept) {
  for (uint32_t code = 0; code <= 0xffff; ++code) {
    float value = makeFloat(code << 16);
    if (std::isnan(value)) {
      EXPECT_TRUE(
          std::isnan(makeFloat(uint32_t(getCode(__truncsfbf2(value))) << 16)));
      continue;
    }
    EXPECT_EQ(getCode(__truncsfbf2(value)), code);
    EXPECT_EQ(getCode(__truncdfbf2(value)), code);
  }
}

TEST(Builtins, RoundsToNearestEven) {
  EXPECT_EQ(getCode(__truncsfbf2(makeFloat(0x3f808000))), 0x3f80);
  EXPECT_EQ(getCode(__truncsfbf2(makeFloat(0x3f808001))), 0x3f81);
  EXPECT_EQ(getCode(__truncsfbf2(makeFloat(0x3f818000))), 0x3f82);
  EXPECT_EQ(getCode(__truncsfbf2(makeFloat(0x00008001))), 0x0001);
  EXPECT_EQ(getCode(__truncsfbf2(makeFloat(0x7f7fffff))), 0x7f80);
  // A NaN whose upper half looks like infinity.
  EXPECT_TRUE(std::isnan(
      makeFloat(uint32_t(getCode(__truncsfbf2(makeFloat(0x7f800001)))) << 16)));
}

TEST(Builtins, RoundsADoubleOnce) {
  // Just off the ties of 1 and its successors, by less than a float can tell.
  double tie = 1 + std::ldexp(1.0, -8), tiny = std::ldexp(1.0, -40);
  EXPECT_EQ(getCode(__truncdfbf2(tie)), 0x3f80);
  EXPECT_EQ(getCode(__truncdfbf2(tie + tiny)), 0x3f81);
  EXPECT_EQ(getCode(__truncdfbf2(-tie - tiny)), 0xbf81);
  double next = tie + std::ldexp(1.0, -7);
  EXPECT_EQ(getCode(__truncdfbf2(next)), 0x3f82);
  EXPECT_EQ(getCode(__truncdfbf2(next - tiny)), 0x3f81);
  EXPECT_EQ(getCode(__truncdfbf2(-next + tiny)), 0xbf81);
  EXPECT_EQ(getCode(__truncdfbf2(1e300)), 0x7f80);
  EXPECT_EQ(getCode(__truncdfbf2(-1e-300)), 0x8000);
  EXPECT_TRUE(
      std::isnan(makeFloat(uint32_t(getCode(__truncdfbf2(NAN))) << 16)));
}

//===----------------------------------------------------------------------===//
// Copies
//===----------------------------------------------------------------------===//

namespace {
/// An unranked memref over `data`.
struct MemRef {
  MemRef(void *data, int64_t offset, std::vector<int64_t> sizes,
         const std::vector<int64_t> &strides)
      : words{reinterpret_cast<int64_t>(data), reinterpret_cast<int64_t>(data),
              offset} {
    unranked.rank = static_cast<int64_t>(sizes.size());
    words.insert(words.end(), sizes.begin(), sizes.end());
    words.insert(words.end(), strides.begin(), strides.end());
    unranked.words = words.data();
  }

  std::vector<int64_t> words;
  struct {
    int64_t rank;
    const int64_t *words;
  } unranked;
};
} // namespace

TEST(MemRefCopy, FollowsStridesAndOffsets) {
  int16_t source[] = {0, 1, 2, 3, 4, 5, 6};
  int16_t destination[6] = {-1, -1, -1, -1, -1, -1};
  // [[1, 2, 3], [4, 5, 6]] into the transposed half of six elements.
  MemRef from(source, 1, {2, 3}, {3, 1}), to(destination, 0, {2, 3}, {1, 2});
  memrefCopy(2, &from.unranked, &to.unranked);
  EXPECT_EQ(std::vector<int16_t>(destination, destination + 6),
            (std::vector<int16_t>{1, 4, 2, 5, 3, 6}));
}

TEST(MemRefCopy, CopiesDenseRowsAndScalars) {
  float source[] = {1, 2, 3}, destination[] = {0, 0, 0};
  MemRef row(source, 0, {2}, {1}), rowTo(destination, 1, {2}, {1});
  memrefCopy(4, &row.unranked, &rowTo.unranked);
  MemRef scalar(source, 2, {}, {}), scalarTo(destination, 0, {}, {});
  memrefCopy(4, &scalar.unranked, &scalarTo.unranked);
  EXPECT_EQ(std::vector<float>(destination, destination + 3),
            (std::vector<float>{3, 1, 2}));
}

TEST(MemRefCopy, TouchesNothingWhenEmpty) {
  MemRef empty(nullptr, 0, {4, 0}, {1, 1});
  memrefCopy(4, &empty.unranked, &empty.unranked);
}
