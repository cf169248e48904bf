//===- ScalingStateTest.cpp - The state of delayed scaling ----------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The interface's errors and rules. The numbers are checked against a model in
// test/Runtime/scaling-state-reference.py, files in scaling-state-file.py.
//
//===----------------------------------------------------------------------===//

#include "fp8/Runtime/ScalingState.h"

#include "gtest/gtest.h"

#include <atomic>
#include <cfenv>
#include <cfloat>
#include <chrono>
#include <cmath>
#include <string>
#include <thread>
#include <vector>

static std::string makeManifest(const std::string &slots,
                                const std::string &recipe = "") {
  return R"({"version": 1, "slots": [)" + slots + "]" +
         (recipe.empty() ? "" : ", " + recipe) + "}";
}

static const char *const kTwoSlots =
    R"({"name": "x", "format": "e4m3", "role": "fprop", "operand": "activation"},
       {"name": "dy", "format": "e5m2"})";

static fp8rt_status create(const std::string &manifest, fp8rt_state &state) {
  return fp8rt_state_create(manifest.data(), manifest.size(), &state);
}

namespace {
class ScalingState : public testing::Test {
protected:
  void SetUp() override { make(kTwoSlots, R"("amax_history_len": 4)"); }
  void TearDown() override { fp8rt_state_destroy(state); }

  void make(const std::string &slots, const std::string &recipe) {
    fp8rt_state_destroy(state);
    ASSERT_EQ(create(makeManifest(slots, recipe), state), FP8RT_OK)
        << fp8rt_get_last_error();
    ASSERT_EQ(fp8rt_state_get_rows(state, &rows), FP8RT_OK);
  }

  void step(float x, float dy) {
    rows.amax[0] = x;
    rows.amax[1] = dy;
    ASSERT_EQ(fp8rt_state_update(state), FP8RT_OK);
  }

  std::vector<float> getHistory(fp8rt_state of, const char *name) {
    std::vector<float> history(4);
    EXPECT_EQ(fp8rt_state_get_history(of, name, history.data(), 4), FP8RT_OK)
        << fp8rt_get_last_error();
    return history;
  }
  std::vector<float> getHistory(const char *name) {
    return getHistory(state, name);
  }

  void expectError(fp8rt_status status, fp8rt_status expected,
                   const std::string &message) {
    EXPECT_STREQ(fp8rt_stringify_status(status),
                 fp8rt_stringify_status(expected));
    EXPECT_EQ(fp8rt_get_last_error(), message);
  }

  fp8rt_state state = 0;
  fp8rt_state_rows rows = {};
};

using History = std::vector<float>;
} // namespace

//===----------------------------------------------------------------------===//
// Handles
//===----------------------------------------------------------------------===//

TEST_F(ScalingState, RefusesUseAfterDestroy) {
  fp8rt_state old = state;
  ASSERT_EQ(fp8rt_state_destroy(state), FP8RT_OK);
  std::string message = "expected a state, but got " + std::to_string(old) +
                        ", which was destroyed or never given out";
  expectError(fp8rt_state_update(old), FP8RT_ERROR_INVALID_HANDLE, message);
  expectError(fp8rt_state_destroy(old), FP8RT_ERROR_INVALID_HANDLE, message);
  // Another state in its place does not bring the old handle back.
  make(kTwoSlots, "");
  EXPECT_NE(state, old);
  expectError(fp8rt_state_update(old), FP8RT_ERROR_INVALID_HANDLE, message);
}

TEST_F(ScalingState, RefusesHandlesThatNeverWere) {
  expectError(fp8rt_state_update(0), FP8RT_ERROR_INVALID_HANDLE,
              "expected a state, but got 0");
  for (fp8rt_state bad : {fp8rt_state(1), ~fp8rt_state(0), state + 1000,
                          state ^ fp8rt_state(1) << 63})
    expectError(fp8rt_state_reset(bad), FP8RT_ERROR_INVALID_HANDLE,
                "expected a state, but got " + std::to_string(bad) +
                    ", which was destroyed or never given out");
}

TEST_F(ScalingState, RefusesNull) {
  auto expect = [&](fp8rt_status status, const std::string &argument) {
    expectError(status, FP8RT_ERROR_INVALID_ARGUMENT,
                "expected " + argument + ", but got null");
  };
  std::string manifest = makeManifest("");
  float value;
  int64_t index;
  expect(fp8rt_state_create(nullptr, 0, &state), "manifest");
  expect(fp8rt_state_create(manifest.data(), manifest.size(), nullptr),
         "state");
  expect(fp8rt_state_create_from_file(nullptr, &state), "path");
  expect(fp8rt_state_create_from_file("x", nullptr), "state");
  expect(fp8rt_state_clone(state, nullptr), "clone");
  expect(fp8rt_state_reset_slot(state, nullptr), "name");
  expect(fp8rt_state_rename_slot(state, nullptr, "x"), "name");
  expect(fp8rt_state_rename_slot(state, "x", nullptr), "new_name");
  expect(fp8rt_state_get_rows(state, nullptr), "rows");
  expect(fp8rt_state_get_info(state, nullptr), "info");
  expect(fp8rt_state_get_slot(state, 0, nullptr), "slot");
  expect(fp8rt_state_find_slot(state, nullptr, &index), "name");
  expect(fp8rt_state_find_slot(state, "x", nullptr), "index");
  expect(fp8rt_state_get_scale(state, nullptr, &value), "name");
  expect(fp8rt_state_get_scale(state, "x", nullptr), "scale");
  expect(fp8rt_state_set_scale(state, nullptr, 1), "name");
  expect(fp8rt_state_get_words(state, "x", nullptr, 4), "words");
  expect(fp8rt_state_set_words(state, "x", nullptr, 4), "words");
  expect(fp8rt_state_get_history(state, "x", nullptr, 4), "history");
  expect(fp8rt_state_set_history(state, "x", nullptr, 4), "history");
  expect(fp8rt_state_get_histories(state, nullptr, 8), "histories");
  expect(fp8rt_state_get_statistics(state, 0, nullptr), "statistics");
  expect(fp8rt_state_save(state, nullptr), "path");
  expect(fp8rt_state_load(state, nullptr, 0, nullptr), "path");
}

TEST_F(ScalingState, KeepsTheErrorPerThread) {
  fp8rt_state_update(0);
  std::thread([] {
    EXPECT_STREQ(fp8rt_get_last_error(), "");
    fp8rt_state_get_rows(1, nullptr);
  }).join();
  EXPECT_STREQ(fp8rt_get_last_error(), "expected a state, but got 0");
}

TEST_F(ScalingState, SaysItsVersion) {
  EXPECT_EQ(fp8rt_get_version(), uint32_t(FP8RT_VERSION));
  EXPECT_STREQ(fp8rt_stringify_status(FP8RT_ERROR_BUSY), "FP8RT_ERROR_BUSY");
  EXPECT_STREQ(fp8rt_stringify_status(-1), "unknown status");
  EXPECT_STREQ(fp8rt_stringify_status(FP8RT_ERROR_CUDA), "FP8RT_ERROR_CUDA");
  EXPECT_STREQ(fp8rt_stringify_status(FP8RT_ERROR_INVALID_PROGRAM),
               "FP8RT_ERROR_INVALID_PROGRAM");
  EXPECT_STREQ(fp8rt_stringify_status(FP8RT_ERROR_ON_DEVICE),
               "FP8RT_ERROR_ON_DEVICE");
  EXPECT_STREQ(fp8rt_stringify_status(FP8RT_ERROR_STOPPED),
               "FP8RT_ERROR_STOPPED");
  EXPECT_STREQ(fp8rt_stringify_status(21), "unknown status");
}

TEST_F(ScalingState, KeepsTheMessagesOfOtherLibraries) {
  EXPECT_EQ(fp8rt_set_last_error(FP8RT_ERROR_BUSY, "wait"), FP8RT_ERROR_BUSY);
  EXPECT_STREQ(fp8rt_get_last_error(), "wait");
  fp8rt_set_last_error(FP8RT_OK, nullptr);
  EXPECT_STREQ(fp8rt_get_last_error(), "");
}

TEST_F(ScalingState, ReportsASecondThread) {
  // Large, so that the threads soon meet.
  std::string slots;
  for (int i = 0; i < 2000; ++i)
    slots += (i ? "," : "") + std::string(R"({"format": "e4m3", "name": "s)") +
             std::to_string(i) + "\"}";
  make(slots, "");
  std::atomic<int64_t> updates{0}, refused{0}, others{0};
  auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  auto work = [&] {
    while (refused == 0 && std::chrono::steady_clock::now() < deadline) {
      fp8rt_status status = fp8rt_state_update(state);
      ++(status == FP8RT_OK           ? updates
         : status == FP8RT_ERROR_BUSY ? refused
                                      : others);
    }
  };
  std::thread first(work), second(work);
  first.join();
  second.join();
  EXPECT_GT(refused, 0);
  EXPECT_EQ(others, 0);
  fp8rt_state_info info;
  ASSERT_EQ(fp8rt_state_get_info(state, &info), FP8RT_OK);
  EXPECT_EQ(info.steps, updates);
}

TEST_F(ScalingState, SurvivesDestructionByAnotherThread) {
  for (int round = 0; round < 200; ++round) {
    fp8rt_state mine;
    ASSERT_EQ(create(makeManifest(kTwoSlots), mine), FP8RT_OK);
    std::thread user([&] {
      fp8rt_status status;
      do
        status = fp8rt_state_update(mine);
      while (status == FP8RT_OK || status == FP8RT_ERROR_BUSY);
      EXPECT_EQ(status, FP8RT_ERROR_INVALID_HANDLE);
    });
    while (fp8rt_state_destroy(mine) != FP8RT_OK)
      std::this_thread::yield();
    user.join();
  }
}

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

TEST_F(ScalingState, StartsWithScaleOne) {
  EXPECT_EQ(rows.num_slots, 2);
  EXPECT_EQ(rows.scale[0], 1);
  EXPECT_EQ(rows.scale_inv[1], 1);
  EXPECT_EQ(getHistory("x"), (History{0, 0, 0, 0}));
}

TEST_F(ScalingState, GivesSlotsTheirCaches) {
  EXPECT_EQ(rows.cache[0], nullptr);
  fp8rt_state mine, clone;
  ASSERT_EQ(create(makeManifest(R"({"name": "x", "format": "e4m3"},
                {"name": "w", "format": "e4m3", "cache": 5})"),
                   mine),
            FP8RT_OK);
  fp8rt_state_rows own, other;
  ASSERT_EQ(fp8rt_state_get_rows(mine, &own), FP8RT_OK);
  EXPECT_EQ(own.cache[0], nullptr);
  auto *bytes = static_cast<unsigned char *>(own.cache[1]);
  EXPECT_EQ(bytes[4], 0);
  bytes[4] = 7;
  ASSERT_EQ(fp8rt_state_clone(mine, &clone), FP8RT_OK);
  ASSERT_EQ(fp8rt_state_get_rows(clone, &other), FP8RT_OK);
  EXPECT_NE(other.cache[1], own.cache[1]);
  EXPECT_EQ(static_cast<unsigned char *>(other.cache[1])[4], 7);
  EXPECT_EQ(fp8rt_state_destroy(mine), FP8RT_OK);
  EXPECT_EQ(static_cast<unsigned char *>(other.cache[1])[4], 7);
  EXPECT_EQ(fp8rt_state_destroy(clone), FP8RT_OK);
}

TEST_F(ScalingState, ScalesByTheFormatOfEachSlot) {
  step(2, 2);
  EXPECT_EQ(rows.scale[0], 224);
  EXPECT_EQ(rows.scale[1], 28672);
  EXPECT_EQ(rows.scale_inv[1], 1.0f / 28672);
  EXPECT_EQ(rows.amax[0], 0);
}

TEST_F(ScalingState, PresentsTheHistoryAsTEDoes) {
  for (float amax : {1.0f, 2.0f, 3.0f, 4.0f})
    step(amax, 0);
  rows.amax[0] = 5;
  EXPECT_EQ(getHistory("x"), (History{5, 2, 3, 4}));
  // No amax, no rotation.
  EXPECT_EQ(getHistory("dy"), (History{0, 0, 0, 0}));
  History all(8);
  ASSERT_EQ(fp8rt_state_get_histories(state, all.data(), 8), FP8RT_OK);
  EXPECT_EQ(all, (History{5, 0, 2, 0, 3, 0, 4, 0}));
}

TEST_F(ScalingState, PresentsTheHistoryAsFlaxDoes) {
  make(kTwoSlots, R"("amax_history_len": 4, "compat": "flax")");
  for (float amax : {1.0f, 2.0f, 3.0f, 4.0f, 5.0f})
    step(amax, 1);
  EXPECT_EQ(getHistory("x"), (History{5, 2, 3, 4}));
  History set{9, 6, 7, 8};
  ASSERT_EQ(fp8rt_state_set_history(state, "x", set.data(), 4), FP8RT_OK);
  EXPECT_EQ(getHistory("x"), set);
  step(10, 1);
  EXPECT_EQ(getHistory("x"), (History{10, 7, 8, 9}));
}

TEST_F(ScalingState, KeepsTheScaleWhileAnInfIsInTheWindow) {
  step(2, 0);
  step(INFINITY, 0);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(rows.scale[0], 224);
    step(1, 0);
  }
  EXPECT_EQ(rows.scale[0], 224);
  step(1, 0);
  EXPECT_EQ(rows.scale[0], 448);
}

TEST_F(ScalingState, IgnoresTheSignOfAnAmax) {
  step(-2, -0.0f);
  EXPECT_EQ(rows.scale[0], 224);
  EXPECT_EQ(getHistory("x"), (History{0, 0, 0, 2}));
  EXPECT_EQ(getHistory("dy"), (History{0, 0, 0, 0}));
}

TEST_F(ScalingState, RoundsToPowersOfTwo) {
  make(kTwoSlots, R"("pow2": true, "margin": 64)");
  // 448 / 2^64 / 3 = 8.1e-18 and a subnormal: 57344 / 2^64 / 2^98.
  step(3, std::ldexp(1.0f, 98));
  EXPECT_EQ(rows.scale[0], std::ldexp(1.0f, -57));
  EXPECT_EQ(rows.scale[1], std::ldexp(1.0f, -147));
}

TEST_F(ScalingState, DoesNotDependOnTheRoundingMode) {
  std::fesetround(FE_UPWARD);
  step(3, 7);
  EXPECT_EQ(fp8rt_state_set_scale(state, "dy", 3), FP8RT_OK);
  EXPECT_EQ(std::fegetround(), FE_UPWARD);
  std::fesetround(FE_TONEAREST);
  EXPECT_EQ(rows.scale[0], 149.33333f);
  EXPECT_EQ(rows.scale_inv[0], 0.0066964286f);
  EXPECT_EQ(rows.scale_inv[1], 0.33333334f);
}

TEST_F(ScalingState, TakesTheMaximumOverRanks) {
  fp8rt_state other;
  ASSERT_EQ(fp8rt_state_clone(state, &other), FP8RT_OK);
  fp8rt_state_rows otherRows;
  ASSERT_EQ(fp8rt_state_get_rows(other, &otherRows), FP8RT_OK);
  const float amaxes[][4] = {{1, 2, 3, 0}, {5, 0, 4, 0}, {0, 0, 7, 8}};
  for (auto &[x0, dy0, x1, dy1] : amaxes) {
    rows.amax[0] = x0, rows.amax[1] = dy0;
    otherRows.amax[0] = x1, otherRows.amax[1] = dy1;
    for (int64_t i = 0; i < rows.num_slots; ++i)
      rows.amax[i] = otherRows.amax[i] =
          std::max(rows.amax[i], otherRows.amax[i]);
    ASSERT_EQ(fp8rt_state_update(state), FP8RT_OK);
    ASSERT_EQ(fp8rt_state_update(other), FP8RT_OK);
    EXPECT_EQ(rows.scale[0], otherRows.scale[0]);
    EXPECT_EQ(rows.scale[1], otherRows.scale[1]);
  }
  EXPECT_EQ(getHistory("x"), (History{0, 3, 5, 7}));
  EXPECT_EQ(getHistory(other, "x"), (History{0, 3, 5, 7}));
  // Neither rank had a dy in the second step.
  EXPECT_EQ(getHistory(other, "dy"), (History{0, 0, 2, 8}));
  fp8rt_state_destroy(other);
}

//===----------------------------------------------------------------------===//
// Freezing, resetting, cloning
//===----------------------------------------------------------------------===//

TEST_F(ScalingState, RecordsNothingWhileFrozen) {
  step(2, 2);
  // Half of a step's micro-batches, then an evaluation.
  rows.amax[0] = 3;
  rows.saturated[0] = 5;
  ASSERT_EQ(fp8rt_state_freeze(state), FP8RT_OK);
  ASSERT_EQ(fp8rt_state_freeze(state), FP8RT_OK);
  EXPECT_EQ(rows.amax[0], 0);
  rows.underflow[0] = 7;
  step(100, 100);
  EXPECT_EQ(rows.scale[0], 224);
  EXPECT_EQ(rows.amax[0], 0);
  EXPECT_EQ(getHistory("x"), (History{3, 0, 0, 2}));
  rows.amax[0] = 100;
  ASSERT_EQ(fp8rt_state_unfreeze(state), FP8RT_OK);
  ASSERT_EQ(fp8rt_state_unfreeze(state), FP8RT_OK);
  EXPECT_EQ(rows.amax[0], 3);
  fp8rt_state_statistics statistics;
  ASSERT_EQ(fp8rt_state_get_statistics(state, 0, &statistics), FP8RT_OK);
  EXPECT_EQ(statistics.saturated, 5);
  EXPECT_EQ(statistics.underflow, 0);
  fp8rt_state_info info;
  ASSERT_EQ(fp8rt_state_get_info(state, &info), FP8RT_OK);
  EXPECT_EQ(info.steps, 1);
}

TEST_F(ScalingState, Resets) {
  const float *scale = rows.scale;
  step(2, INFINITY);
  rows.amax[0] = 1;
  rows.underflow[0] = 1;
  ASSERT_EQ(fp8rt_state_reset(state), FP8RT_OK);
  EXPECT_EQ(getHistory("x"), (History{0, 0, 0, 0}));
  EXPECT_EQ(scale[0], 1);
  EXPECT_EQ(rows.underflow[0], 0);
  // The Inf must be gone from the window too.
  step(0, 1);
  EXPECT_EQ(rows.scale[1], 57344);
}

TEST_F(ScalingState, ResetsOneSlot) {
  step(2, 2);
  step(4, INFINITY);
  rows.amax[0] = rows.amax[1] = 8;
  rows.underflow[1] = rows.saturated[1] = 3;
  ASSERT_EQ(fp8rt_state_freeze(state), FP8RT_OK);
  rows.amax[1] = 9;
  ASSERT_EQ(fp8rt_state_reset_slot(state, "dy"), FP8RT_OK);
  EXPECT_EQ(rows.amax[1], 0);
  ASSERT_EQ(fp8rt_state_unfreeze(state), FP8RT_OK);
  EXPECT_EQ(getHistory("x"), (History{8, 0, 2, 4}));
  EXPECT_EQ(getHistory("dy"), (History{0, 0, 0, 0}));
  EXPECT_EQ(rows.scale[0], 112);
  EXPECT_EQ(rows.scale[1], 1);
  EXPECT_EQ(rows.scale_inv[1], 1);
  fp8rt_state_statistics statistics;
  ASSERT_EQ(fp8rt_state_get_statistics(state, 1, &statistics), FP8RT_OK);
  EXPECT_EQ(statistics.amax, 0);
  EXPECT_EQ(statistics.recorded + statistics.non_finite, 0);
  EXPECT_EQ(statistics.underflow + statistics.saturated, 0);
  fp8rt_state_info info;
  ASSERT_EQ(fp8rt_state_get_info(state, &info), FP8RT_OK);
  EXPECT_EQ(info.steps, 2);
  // The Inf must be gone from the window too.
  step(0, 1);
  EXPECT_EQ(rows.scale[1], 57344);
  expectError(fp8rt_state_reset_slot(state, "z"), FP8RT_ERROR_NOT_FOUND,
              "expected the name of a slot, but got 'z'");
}

TEST_F(ScalingState, RenamesSlots) {
  step(2, 4);
  ASSERT_EQ(fp8rt_state_rename_slot(state, "x", "l0.x"), FP8RT_OK);
  EXPECT_EQ(getHistory("l0.x"), (History{0, 0, 0, 2}));
  int64_t index;
  EXPECT_EQ(fp8rt_state_find_slot(state, "x", &index), FP8RT_ERROR_NOT_FOUND);
  fp8rt_state_slot slot;
  ASSERT_EQ(fp8rt_state_get_slot(state, 0, &slot), FP8RT_OK);
  EXPECT_STREQ(slot.name, "l0.x");
  fp8rt_state_info info;
  ASSERT_EQ(fp8rt_state_get_info(state, &info), FP8RT_OK);
  EXPECT_NE(std::string(info.manifest).find("\"name\":\"l0.x\""),
            std::string::npos);
  EXPECT_EQ(fp8rt_state_rename_slot(state, "dy", "dy"), FP8RT_OK);
  EXPECT_EQ(fp8rt_state_rename_slot(state, "dy", "x"), FP8RT_OK);
  expectError(fp8rt_state_rename_slot(state, "x", "l0.x"),
              FP8RT_ERROR_INVALID_ARGUMENT,
              "expected a name that no slot has, but got 'l0.x'");
  for (const char *bad : {"", "\xff", "a\xc3"})
    expectError(fp8rt_state_rename_slot(state, "x", bad),
                FP8RT_ERROR_INVALID_ARGUMENT,
                "expected new_name to be UTF-8 and not empty");
  expectError(fp8rt_state_rename_slot(state, "dy", "y"), FP8RT_ERROR_NOT_FOUND,
              "expected the name of a slot, but got 'dy'");
}

TEST_F(ScalingState, ClonesIndependently) {
  step(2, 2);
  ASSERT_EQ(fp8rt_state_freeze(state), FP8RT_OK);
  fp8rt_state clone;
  ASSERT_EQ(fp8rt_state_clone(state, &clone), FP8RT_OK);
  fp8rt_state_info info;
  ASSERT_EQ(fp8rt_state_get_info(clone, &info), FP8RT_OK);
  EXPECT_EQ(info.frozen, 1);
  ASSERT_EQ(fp8rt_state_unfreeze(state), FP8RT_OK);
  step(4, 4);
  float scale;
  ASSERT_EQ(fp8rt_state_get_scale(clone, "x", &scale), FP8RT_OK);
  EXPECT_EQ(scale, 224);
  EXPECT_EQ(getHistory(clone, "x"), (History{0, 0, 0, 2}));
  ASSERT_EQ(fp8rt_state_destroy(clone), FP8RT_OK);
  EXPECT_EQ(getHistory("x"), (History{0, 0, 2, 4}));
}

//===----------------------------------------------------------------------===//
// Contents
//===----------------------------------------------------------------------===//

TEST_F(ScalingState, FindsSlots) {
  int64_t index;
  ASSERT_EQ(fp8rt_state_find_slot(state, "dy", &index), FP8RT_OK);
  EXPECT_EQ(index, 1);
  fp8rt_state_slot slot;
  ASSERT_EQ(fp8rt_state_get_slot(state, 0, &slot), FP8RT_OK);
  EXPECT_STREQ(slot.name, "x");
  EXPECT_STREQ(slot.format, "e4m3");
  EXPECT_STREQ(slot.role, "fprop");
  EXPECT_STREQ(slot.operand, "activation");
  expectError(fp8rt_state_find_slot(state, "y", &index), FP8RT_ERROR_NOT_FOUND,
              "expected the name of a slot, but got 'y'");
  expectError(fp8rt_state_get_slot(state, 2, &slot),
              FP8RT_ERROR_INVALID_ARGUMENT,
              "expected the index of one of 2 slots, but got 2");
  expectError(fp8rt_state_get_slot(state, -1, &slot),
              FP8RT_ERROR_INVALID_ARGUMENT,
              "expected the index of one of 2 slots, but got -1");
}

TEST_F(ScalingState, SetsScales) {
  ASSERT_EQ(fp8rt_state_set_scale(state, "x", 8), FP8RT_OK);
  EXPECT_EQ(rows.scale[0], 8);
  EXPECT_EQ(rows.scale_inv[0], 0.125f);
  for (float bad : {0.0f, -1.0f, INFINITY, NAN})
    expectError(fp8rt_state_set_scale(state, "x", bad),
                FP8RT_ERROR_INVALID_ARGUMENT,
                "expected a scale that is finite and above 0, but got " +
                    std::to_string(bad));
  EXPECT_EQ(rows.scale[0], 8);
}

TEST_F(ScalingState, SetsHistories) {
  History set{1, 16, 2, 4};
  ASSERT_EQ(fp8rt_state_set_history(state, "x", set.data(), 4), FP8RT_OK);
  EXPECT_EQ(getHistory("x"), set);
  EXPECT_EQ(rows.amax[0], 1);
  ASSERT_EQ(fp8rt_state_update(state), FP8RT_OK);
  EXPECT_EQ(rows.scale[0], 28);
  expectError(fp8rt_state_set_history(state, "x", set.data(), 3),
              FP8RT_ERROR_INVALID_ARGUMENT,
              "expected length to be 4, but got 3");
  set[2] = -1;
  expectError(fp8rt_state_set_history(state, "x", set.data(), 4),
              FP8RT_ERROR_INVALID_ARGUMENT,
              "expected amaxes of at least 0, but got -1.000000");
  EXPECT_EQ(getHistory("x"), (History{0, 2, 4, 1}));
}

TEST_F(ScalingState, CountsWhatHappened) {
  step(NAN, 1);
  step(INFINITY, 0);
  step(3, 2);
  rows.underflow[1] += 4;
  rows.saturated[1] += 2;
  fp8rt_state_statistics x, dy;
  ASSERT_EQ(fp8rt_state_get_statistics(state, 0, &x), FP8RT_OK);
  ASSERT_EQ(fp8rt_state_get_statistics(state, 1, &dy), FP8RT_OK);
  EXPECT_EQ(x.amax, 3);
  EXPECT_EQ(x.recorded, 3);
  EXPECT_EQ(x.non_finite, 2);
  EXPECT_EQ(dy.recorded, 2);
  EXPECT_EQ(dy.scale, 28672);
  EXPECT_EQ(dy.scale_inv, 1.0f / 28672);
  EXPECT_EQ(dy.underflow, 4);
  EXPECT_EQ(dy.saturated, 2);
}
