//===- PackedCodesTest.cpp - Codes that share bytes -----------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fp8/IR/PackedCodes.h"
#include "mlir/IR/MLIRContext.h"

#include "gtest/gtest.h"

#include <random>

using namespace mlir;
using namespace mlir::fp8;
using fp8rt::CodePacking;

TEST(PackedCodesTest, GroupsAreWholeBytes) {
  // Bits of a code, codes and bytes of a group.
  for (auto [bits, codes, bytes] :
       {std::tuple{8, 1, 1}, std::tuple{4, 2, 1}, std::tuple{6, 4, 3}}) {
    CodePacking packing{bits};
    EXPECT_EQ(packing.getCodes(), codes);
    EXPECT_EQ(packing.getBytes(), bytes);
    EXPECT_EQ(packing.isPacked(), bits < 8);
    EXPECT_EQ(packing.getBytesOf(0), 0);
    EXPECT_EQ(packing.getBytesOf(1), bytes);
    EXPECT_EQ(packing.getBytesOf(codes), bytes);
    EXPECT_EQ(packing.getBytesOf(codes + 1), 2 * bytes);
  }
}

TEST(PackedCodesTest, TypesHaveThePackingOfTheirFormats) {
  MLIRContext context;
  EXPECT_EQ(getPacking(Float4E2M1FNType::get(&context)).bits, 4);
  EXPECT_FALSE(isPacked(Float8E4M3FNType::get(&context)));
  EXPECT_FALSE(isPacked(BFloat16Type::get(&context)));
  EXPECT_FALSE(isPacked(IntegerType::get(&context, 4)));
  auto type = RankedTensorType::get({3, 5}, Float4E2M1FNType::get(&context));
  EXPECT_EQ(getStoredType(type),
            RankedTensorType::get({3, 3}, IntegerType::get(&context, 8)));
}

TEST(PackedCodesTest, FirstCodesAreInLowBits) {
  EXPECT_EQ(packCodes({4}, {0x1, 0xf, 0x3}, 3),
            (SmallVector<char>{'\xf1', '\x03'}));
  // 0b000100'000011'000010'000001.
  EXPECT_EQ(packCodes({6}, {1, 2, 3, 4}, 4),
            (SmallVector<char>{'\x81', '\x30', '\x10'}));
}

TEST(PackedCodesTest, PackedCodesComeBack) {
  std::mt19937 random(1);
  for (int bits : {4, 6, 8})
    for (int64_t columns : {1, 2, 3, 4, 7, 8}) {
      CodePacking packing{bits};
      SmallVector<char> codes;
      for (int64_t i = 0; i < 3 * columns; ++i)
        codes.push_back(static_cast<char>(random() & packing.getMask()));
      SmallVector<char> bytes = packCodes(packing, codes, columns);
      EXPECT_EQ(static_cast<int64_t>(bytes.size()),
                3 * packing.getBytesOf(columns));
      EXPECT_EQ(unpackCodes(packing, bytes, columns), codes);
    }
}
