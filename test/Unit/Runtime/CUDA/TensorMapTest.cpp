//===- TensorMapTest.cpp - Descriptors of tensors for the TMA -------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Async/TensorMap.h"
#include "EmulatedDriver.h"

#include "fp8/Runtime/TensorMap.h"

#include <cstring>
#include <thread>
#include <vector>

namespace {
class TensorMap : public EmulatedDriver {
protected:
  /// A tensor that no other test uses: maps stay in the cache.
  static fp8rt_tensor_map_desc getDesc(uint64_t address = 0) {
    static uint64_t next = 1 << 20;
    fp8rt_tensor_map_desc desc = {};
    desc.address = reinterpret_cast<void *>(address ? address : next += 4096);
    desc.type = FP8RT_TENSOR_MAP_BF16;
    desc.rank = 3;
    desc.sizes[0] = 1000;
    desc.sizes[1] = 200;
    desc.sizes[2] = 3;
    desc.strides[1] = 2048;
    desc.strides[2] = 1 << 20;
    desc.box[0] = 64;
    desc.box[1] = 128;
    desc.box[2] = 1;
    desc.swizzle = FP8RT_TENSOR_MAP_SWIZZLE_128B;
    desc.l2_promotion = FP8RT_TENSOR_MAP_L2_256B;
    return desc;
  }

  static void expectRefused(const fp8rt_tensor_map_desc &desc,
                            const std::string &message) {
    fp8rt_tensor_map map;
    expectError(fp8rt_tensor_map_get(0, &desc, &map),
                FP8RT_ERROR_INVALID_ARGUMENT, message);
    EXPECT_EQ(getCalls("cuTensorMapEncodeTiled"), 0);
  }

  static fp8emu::TensorMap decode(const fp8rt_tensor_map &map) {
    fp8emu::TensorMap decoded;
    std::memcpy(&decoded, &map, sizeof(decoded));
    EXPECT_EQ(decoded.magic, fp8emu::kTensorMapMagic);
    return decoded;
  }
  static uint64_t getAddress(const fp8rt_tensor_map &map) {
    return decode(map).address;
  }
};
} // namespace

TEST_F(TensorMap, SaysWhatItWasToldTo) {
  fp8rt_tensor_map_desc desc = getDesc();
  fp8rt_tensor_map map;
  expectOk(fp8rt_tensor_map_get(0, &desc, &map));
  EXPECT_EQ(getAddress(map), reinterpret_cast<uintptr_t>(desc.address));
  fp8emu::TensorMap decoded = decode(map);
  EXPECT_EQ(decoded.type, 9);
  EXPECT_EQ(decoded.rank, 3);
  EXPECT_EQ(decoded.swizzle, 3);
  EXPECT_EQ(decoded.promotion, 3);
  EXPECT_EQ(decoded.lastIndex[0], 999u);
  EXPECT_EQ(decoded.lastIndex[2], 2u);
  EXPECT_EQ(decoded.strides[1], 2048u);
  EXPECT_EQ(decoded.strides[2], 1u << 20);
  EXPECT_EQ(decoded.box[0], 64);
  EXPECT_EQ(decoded.box[1], 128);
  EXPECT_EQ(decoded.box[2], 1);
}

TEST_F(TensorMap, IsMadeOnce) {
  fp8rt_tensor_map_desc desc = getDesc();
  fp8rt_tensor_map first, second;
  expectOk(fp8rt_tensor_map_get(0, &desc, &first));
  // What is beyond the rank does not count.
  desc.strides[0] = 5;
  desc.sizes[4] = 7;
  expectOk(fp8rt_tensor_map_get(0, &desc, &second));
  EXPECT_EQ(getCalls("cuTensorMapEncodeTiled"), 1);
  EXPECT_EQ(std::memcmp(&first, &second, sizeof(first)), 0);
}

TEST_F(TensorMap, IsMadeAgainForAnythingElse) {
  fp8rt_tensor_map_desc base = getDesc();
  std::vector<fp8rt_tensor_map_desc> all(10, base);
  all[1].address = static_cast<const char *>(base.address) + 16;
  all[2].type = FP8RT_TENSOR_MAP_F16;
  all[3].rank = 2;
  all[4].sizes[2] = 4;
  all[5].strides[2] = 1 << 21;
  all[6].box[2] = 2;
  all[7].swizzle = FP8RT_TENSOR_MAP_SWIZZLE_NONE;
  all[8].l2_promotion = FP8RT_TENSOR_MAP_L2_NONE;
  all[9].box[0] = 32;
  fp8rt_tensor_map map;
  for (const fp8rt_tensor_map_desc &desc : all)
    expectOk(fp8rt_tensor_map_get(0, &desc, &map));
  EXPECT_EQ(getCalls("cuTensorMapEncodeTiled"), 10);
  for (const fp8rt_tensor_map_desc &desc : all)
    expectOk(fp8rt_tensor_map_get(0, &desc, &map));
  EXPECT_EQ(getCalls("cuTensorMapEncodeTiled"), 10);
}

TEST_F(TensorMap, IsForgottenWhenThereAreTooMany) {
  fp8rt_tensor_map map;
  for (uint64_t i = 0; i < 5000; ++i) {
    fp8rt_tensor_map_desc desc = getDesc((i + 1) << 24);
    expectOk(fp8rt_tensor_map_get(0, &desc, &map));
    EXPECT_EQ(getAddress(map), (i + 1) << 24);
  }
  int made = getCalls("cuTensorMapEncodeTiled");
  EXPECT_EQ(made, 5000);
  // The last few are there, the first are not.
  for (uint64_t i : {4999, 4998, 4997}) {
    fp8rt_tensor_map_desc desc = getDesc((i + 1) << 24);
    expectOk(fp8rt_tensor_map_get(0, &desc, &map));
  }
  EXPECT_EQ(getCalls("cuTensorMapEncodeTiled"), made);
  for (uint64_t i : {0, 1, 2}) {
    fp8rt_tensor_map_desc desc = getDesc((i + 1) << 24);
    expectOk(fp8rt_tensor_map_get(0, &desc, &map));
    EXPECT_EQ(getAddress(map), (i + 1) << 24);
  }
  EXPECT_EQ(getCalls("cuTensorMapEncodeTiled"), made + 3);
}

TEST_F(TensorMap, StaysWhileItIsUsed) {
  fp8rt_tensor_map_desc used = getDesc();
  fp8rt_tensor_map map;
  expectOk(fp8rt_tensor_map_get(0, &used, &map));
  for (uint64_t i = 0; i < 5000; ++i) {
    fp8rt_tensor_map_desc desc = getDesc((i + 6000) << 24);
    expectOk(fp8rt_tensor_map_get(0, &desc, &map));
    expectOk(fp8rt_tensor_map_get(0, &used, &map));
  }
  EXPECT_EQ(getCalls("cuTensorMapEncodeTiled"), 5001);
}

TEST_F(TensorMap, KeepsThoseOfAWholeModel) {
  // The tensors of a model lie at regular distances: the hash must not put many
  // into one set.
  fp8rt_tensor_map map;
  for (int round = 0; round < 2; ++round)
    for (uint64_t i = 0; i < 256; ++i) {
      fp8rt_tensor_map_desc desc = getDesc((i + 20000) << 21);
      expectOk(fp8rt_tensor_map_get(0, &desc, &map));
    }
  EXPECT_EQ(getCalls("cuTensorMapEncodeTiled"), 256);
}

TEST_F(TensorMap, RefusesWhatIsMisaligned) {
  fp8rt_tensor_map_desc desc = getDesc(1000008);
  expectRefused(desc, "expected desc.address to be a multiple of 16, but got "
                      "1000008");
  desc = getDesc();
  desc.strides[2] = 1032;
  expectRefused(desc, "expected desc.strides[2] to be a multiple of 16 bytes, "
                      "but got 1032");
  desc = getDesc();
  desc.box[0] = 12;
  expectRefused(
      desc, "expected desc.box[0] to be a multiple of 16 bytes, but got 24");
}

TEST_F(TensorMap, RefusesWhatIsOutOfRange) {
  fp8rt_tensor_map_desc desc = getDesc();
  desc.rank = 6;
  expectRefused(desc, "expected desc.rank to be from 1 to 5, but got 6");
  desc = getDesc();
  desc.type = 10;
  expectRefused(desc, "expected desc.type to be from 0 to 9, but got 10");
  desc = getDesc();
  desc.swizzle = -1;
  expectRefused(desc, "expected desc.swizzle to be from 0 to 3, but got -1");
  desc = getDesc();
  desc.sizes[1] = 0;
  expectRefused(desc, "expected desc.sizes[1] to be from 1 to 2^32, but got 0");
  desc = getDesc();
  desc.box[1] = 257;
  expectRefused(desc, "expected desc.box[1] to be from 1 to 256, but got 257");
  desc = getDesc();
  desc.strides[1] = uint64_t{1} << 40;
  expectRefused(desc, "expected desc.strides[1] to be less than 2^40 bytes");
  desc = getDesc();
  desc.box[0] = 128;
  expectRefused(desc, "expected desc.box[0] to be at most the 128 bytes of the "
                      "swizzle, but got 256");
  desc = getDesc();
  desc.address = nullptr;
  expectRefused(desc, "expected desc.address, but got null");
}

TEST_F(TensorMap, IsNotKeptIfTheDriverRefuses) {
  fp8rt_tensor_map_desc desc = getDesc();
  fp8rt_tensor_map map;
  fail("cuTensorMapEncodeTiled", 1, 1);
  expectError(fp8rt_tensor_map_get(0, &desc, &map),
              FP8RT_ERROR_INVALID_ARGUMENT,
              "cannot make a tensor map of rank 3: CUDA_ERROR_INVALID_VALUE");
  expectOk(fp8rt_tensor_map_get(0, &desc, &map));
  EXPECT_EQ(getCalls("cuTensorMapEncodeTiled"), 2);
}

TEST_F(TensorMap, IsSafeFromManyThreads) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([t] {
      for (uint64_t i = 0; i < 2000; ++i) {
        uint64_t address = (30000 + i * (t + 1) % 1500) << 24;
        fp8rt_tensor_map_desc desc = getDesc(address);
        fp8rt_tensor_map map;
        EXPECT_EQ(fp8rt_tensor_map_get(t % 2, &desc, &map), FP8RT_OK);
        EXPECT_EQ(getAddress(map), address);
      }
    });
  for (std::thread &thread : threads)
    thread.join();
}
