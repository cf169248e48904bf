//===- StructSizeTest.cpp - Tests of structs of other versions ------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Callers whose headers are older, so that their structs are shorter, newer, so
// that they are longer, or from before structs said so.
//
//===----------------------------------------------------------------------===//

#include "StructSize.h"

#include "fp8/Runtime/Context.h"
#include "fp8/Runtime/DeviceState.h"

#include "gtest/gtest.h"

#include <cstring>
#include <string>

using namespace fp8rt;

namespace {
constexpr char kManifest[] =
    R"({"version": 1, "slots": [{"name": "x", "format": "e4m3"}]})";

class StructSizeTest : public testing::Test {
protected:
  void SetUp() override {
    ASSERT_EQ(fp8rt_state_create(kManifest, sizeof(kManifest) - 1, &state),
              FP8RT_OK);
  }
  void TearDown() override { fp8rt_state_destroy(state); }

  /// `get` refuses a struct that says nothing of its size, and does not touch
  /// it.
  template <typename T, typename Get>
  void expectRefused(Get get) {
    for (uint64_t size :
         {uint64_t{0}, uint64_t{2}, uint64_t{detail::kFirstSize<T> - 8},
          uint64_t{5000}, uint64_t{0x7ffc12345678}}) {
      T given, before;
      std::memset(&given, 0x5A, sizeof(T));
      given.struct_size = static_cast<decltype(given.struct_size)>(size);
      std::memcpy(&before, &given, sizeof(T));
      EXPECT_EQ(get(&given), FP8RT_ERROR_INVALID_ARGUMENT);
      EXPECT_NE(std::string(fp8rt_get_last_error()).find("struct_size to be"),
                std::string::npos)
          << fp8rt_get_last_error();
      EXPECT_EQ(std::memcmp(&given, &before, sizeof(T)), 0);
    }
  }

  fp8rt_state state = 0;
};

TEST_F(StructSizeTest, RefusesStructsWithoutSize) {
  expectRefused<fp8rt_state_rows>(
      [&](auto *rows) { return fp8rt_state_get_rows(state, rows); });
  expectRefused<fp8rt_state_rows>(
      [&](auto *rows) { return fp8rt_state_upload(state, 0, nullptr, rows); });
  expectRefused<fp8rt_state_info>(
      [&](auto *info) { return fp8rt_state_get_info(state, info); });
  expectRefused<fp8rt_state_slot>(
      [&](auto *slot) { return fp8rt_state_get_slot(state, 0, slot); });
  expectRefused<fp8rt_state_statistics>(
      [&](auto *of) { return fp8rt_state_get_statistics(state, 0, of); });
  expectRefused<fp8rt_load_report>(
      [&](auto *report) { return fp8rt_state_load(state, "", 0, report); });
  expectRefused<fp8rt_device_info>(
      [&](auto *info) { return fp8rt_device_get_info(0, info); });
  expectRefused<fp8rt_function_info>(
      [&](auto *info) { return fp8rt_function_get_info(0, info); });
  expectRefused<fp8rt_launch_config>(
      [&](auto *config) { return fp8rt_launch(0, config, nullptr, nullptr); });
  expectRefused<fp8rt_tensor_map_desc>([&](auto *desc) {
    fp8rt_tensor_map map;
    return fp8rt_tensor_map_get(0, desc, &map);
  });
  // It returns nothing, but does not write either.
  expectRefused<fp8rt_stats>([&](auto *stats) {
    fp8rt_stats_get(0, stats);
    return FP8RT_ERROR_INVALID_ARGUMENT;
  });
}

// What lies behind a struct is another's.
TEST_F(StructSizeTest, LeavesTheRestOfALongerStruct) {
  struct {
    fp8rt_state_rows rows;
    int64_t more[4] = {1, 2, 3, 4};
  } given;
  given.rows.struct_size = sizeof(given);
  ASSERT_EQ(fp8rt_state_get_rows(state, &given.rows), FP8RT_OK);
  EXPECT_EQ(given.rows.struct_size, sizeof(given));
  EXPECT_EQ(given.rows.num_slots, 1);
  EXPECT_EQ(given.rows.scale[0], 1);
  for (int64_t i = 0; i < 4; ++i)
    EXPECT_EQ(given.more[i], i + 1);
}

/// A struct that has grown.
struct Grown {
  uint64_t struct_size = sizeof(Grown);
  int64_t first, second;
};
} // namespace

template <>
inline constexpr size_t fp8rt::detail::kFirstSize<Grown> = 16;

namespace {
TEST_F(StructSizeTest, GivesAndTakesWhatOlderCallersKnow) {
  Grown old;
  old.struct_size = 16;
  old.first = 5;
  old.second = -1;
  ASSERT_EQ(detail::checkStruct("old", &old), FP8RT_OK);
  Grown storage;
  const Grown &taken = detail::takeStruct(&old, storage);
  EXPECT_EQ(taken.struct_size, sizeof(Grown));
  EXPECT_EQ(taken.first, 5);
  EXPECT_EQ(taken.second, 0);
  detail::giveStruct(&old, {sizeof(Grown), 7, 8});
  EXPECT_EQ(old.struct_size, 16u);
  EXPECT_EQ(old.first, 7);
  EXPECT_EQ(old.second, -1);
}
} // namespace
