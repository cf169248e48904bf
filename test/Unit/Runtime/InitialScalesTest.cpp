//===- InitialScalesTest.cpp - Calls with tensors that are new ------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A program written by hand: `x` is quantized in E4M3, and what that makes of
// it is `y`, quantized in E5M2. Those for a GPU are in
// CUDA/InitialScalesTest.cpp.
//
//===----------------------------------------------------------------------===//

#include "fp8/Runtime/Program.h"
#include "fp8/Runtime/Stats.h"

#include "gtest/gtest.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

int calls;
fp8rt_state running;

void record(fp8rt_state_rows &rows, int slot, float amax) {
  rows.amax[slot] = std::max(rows.amax[slot], amax);
}

/// x -> the largest of y, both recorded.
void chain(void **arguments) {
  float x = *static_cast<float *>(arguments[0]);
  auto &rows = **static_cast<fp8rt_state_rows **>(arguments[1]);
  ++calls;
  if (x < 0)
    fp8rt_program_fail("x is negative");
  record(rows, 0, x);
  rows.saturated[0] += x * rows.scale[0] > 448;
  float y = std::min(x * rows.scale[0], 448.0f) * rows.scale_inv[0];
  record(rows, 1, y);
  fp8rt_stats_record(/*slot=*/0, x, 1, 0, 0, 0, 0);
  *static_cast<float *>(arguments[2]) = y;
}

/// Two tensors of one slot: the second is the larger, the smaller its scale.
void circle(void **arguments) {
  auto &rows = **static_cast<fp8rt_state_rows **>(arguments[1]);
  ++calls;
  record(rows, 0, 8 / rows.scale[0]);
  *static_cast<float *>(arguments[2]) = rows.scale[0];
}

class InitialScales : public testing::Test {
protected:
  void SetUp() override {
    calls = 0;
    fp8rt_stats_reset();
    begin("");
  }
  void TearDown() override { fp8rt_state_destroy(state); }

  /// `options` are of the manifest.
  void begin(const std::string &options) {
    fp8rt_state_destroy(state);
    manifest = R"({"version": 1, "amax_history_len": 4,)" + options +
               R"("slots": [{"name": "x", "format": "e4m3"},
                            {"name": "y", "format": "e5m2"}]})";
    info.version = FP8RT_VERSION;
    info.num_functions = 1;
    info.functions = &function;
    info.name = "test";
    info.state_manifest = manifest.c_str();
    info.num_slots = 2;
    ASSERT_EQ(fp8rt_program_create_state(&info, &state), FP8RT_OK)
        << fp8rt_get_last_error();
    ASSERT_EQ(fp8rt_state_get_rows(state, &rows), FP8RT_OK);
    fp8rt_state_info made;
    ASSERT_EQ(fp8rt_state_get_info(state, &made), FP8RT_OK);
    info.num_words = rows.num_words;
    info.state_recipe = made.recipe;
  }

  /// How often the function runs.
  int call(float x) {
    calls = 0;
    void *arguments[] = {&x}, *results[] = {&y};
    status = fp8rt_program_call(&function, arguments, results, state, nullptr);
    return calls;
  }
  void endStep() { ASSERT_EQ(fp8rt_state_update(state), FP8RT_OK); }

  const fp8rt_program_value value = {"x", "F32", nullptr, -1, 4, 4, 0};
  fp8rt_program_function function = {
      &info, "chain", chain, &value, &value, 1, 1, FP8RT_FUNCTION_TAKES_STATE,
      0};
  std::string manifest;
  fp8rt_program_info info = {};
  fp8rt_state state = 0;
  fp8rt_state_rows rows;
  fp8rt_status status = FP8RT_OK;
  float y = 0;
};

} // namespace

TEST_F(InitialScales, AreThoseOfTheTensors) {
  // Once for x, once for y that follows from it, once with both.
  EXPECT_EQ(call(1000), 3);
  EXPECT_EQ(rows.scale[0], 448.0f / 1000);
  EXPECT_EQ(rows.scale_inv[0], 1 / (448.0f / 1000));
  EXPECT_FLOAT_EQ(y, 1000);
  EXPECT_EQ(rows.scale[1], 57344 / y);
  // What is recorded is what the last one found.
  EXPECT_EQ(rows.amax[0], 1000);
  EXPECT_EQ(rows.amax[1], y);
}

TEST_F(InitialScales, AreThoseOfTheHistoryFromThenOn) {
  call(1000);
  EXPECT_EQ(call(1000), 1);
  endStep();
  EXPECT_EQ(rows.scale[0], 448.0f / 1000);
  EXPECT_EQ(call(500), 1);
  EXPECT_EQ(rows.scale[0], 448.0f / 1000);
  float history[4];
  ASSERT_EQ(fp8rt_state_get_history(state, "x", history, 4), FP8RT_OK);
  EXPECT_EQ(history[3], 1000);
  EXPECT_EQ(history[0], 500);
}

TEST_F(InitialScales, AreEachMicrobatchsOwn) {
  EXPECT_EQ(call(100), 2);
  for (float x : {1000.0f, 10.0f}) {
    EXPECT_GT(call(x), 1);
    EXPECT_EQ(rows.scale[0], 448 / x);
    EXPECT_FLOAT_EQ(y, x);
    EXPECT_EQ(rows.amax[0], 1000);
  }
  // A call without the tensor, as with a weight that is cached, changes
  // nothing.
  EXPECT_EQ(call(0), 1);
  EXPECT_EQ(rows.scale[0], 448.0f / 10);
  endStep();
  EXPECT_EQ(rows.scale[0], 448.0f / 1000);
  EXPECT_EQ(call(10), 1);
}

TEST_F(InitialScales, AreTheLargestsWithoutAnEnd) {
  for (int i = 1; i <= 16; ++i)
    call(i == 8 ? 2000 : 1000);
  // From here on it is no first step to wait for.
  EXPECT_EQ(rows.scale[0], 448.0f / 2000);
  EXPECT_EQ(call(3000), 1);
  EXPECT_EQ(rows.scale[0], 448.0f / 2000);
  endStep();
  EXPECT_EQ(rows.scale[0], 448.0f / 3000);
}

TEST_F(InitialScales, AreOneByAnotherRule) {
  for (const char *options :
       {R"("initial": "one",)", R"("compat": "te_unfused",)",
        R"("compat": "flax",)"}) {
    begin(options);
    EXPECT_EQ(call(1000), 1) << options;
    EXPECT_EQ(rows.scale[0], 1) << options;
    EXPECT_EQ(rows.amax[1], 448) << options;
  }
  begin(R"("initial": "current", "compat": "flax",)");
  EXPECT_EQ(call(1000), 3);
  EXPECT_EQ(rows.scale[0], 448.0f / 1000);
}

TEST_F(InitialScales, FollowTheRule) {
  begin(R"("margin": 2, "pow2": true,)");
  call(1000);
  EXPECT_EQ(rows.scale[0], 0.0625f);
}

TEST_F(InitialScales, WaitForANumberThatHasAScale) {
  for (float x : {0.0f, kInf}) {
    begin("");
    EXPECT_EQ(call(x), x == 0 ? 1 : 2);
    EXPECT_EQ(status, FP8RT_OK);
    EXPECT_EQ(rows.scale[0], 1);
    endStep();
    // Whatever is in the history, no scale follows from it.
    EXPECT_EQ(call(1000), x == 0 ? 3 : 2);
    EXPECT_EQ(rows.scale[0], 448.0f / 1000);
    endStep();
    EXPECT_EQ(rows.scale[0], 448.0f / 1000);
    EXPECT_EQ(call(500), 1);
  }
}

TEST_F(InitialScales, AreEachCallsOwnWhileFrozen) {
  ASSERT_EQ(fp8rt_state_freeze(state), FP8RT_OK);
  for (float x : {1000.0f, 2000.0f}) {
    EXPECT_EQ(call(x), 3);
    EXPECT_FLOAT_EQ(y, x);
    EXPECT_EQ(rows.scale[0], 1);
    EXPECT_EQ(rows.scale_inv[1], 1);
    endStep();
  }
  ASSERT_EQ(fp8rt_state_unfreeze(state), FP8RT_OK);
  EXPECT_EQ(rows.amax[0], 0);
  EXPECT_EQ(call(500), 3);
  EXPECT_EQ(rows.scale[0], 448.0f / 500);
  // In the middle of a step, too.
  ASSERT_EQ(fp8rt_state_freeze(state), FP8RT_OK);
  call(4000);
  EXPECT_FLOAT_EQ(y, 4000);
  EXPECT_EQ(rows.scale[0], 448.0f / 500);
  ASSERT_EQ(fp8rt_state_unfreeze(state), FP8RT_OK);
  EXPECT_EQ(rows.amax[0], 500);
}

TEST_F(InitialScales, GiveWayToThoseOfTheCaller) {
  ASSERT_EQ(fp8rt_state_set_scale(state, "x", 0.25f), FP8RT_OK);
  EXPECT_EQ(call(1000), 2);
  EXPECT_EQ(rows.scale[0], 0.25f);
  // As do histories.
  begin("");
  float history[4] = {0, 0, 0, 3};
  ASSERT_EQ(fp8rt_state_set_history(state, "x", history, 4), FP8RT_OK);
  EXPECT_EQ(call(1000), 2);
  EXPECT_EQ(rows.scale[0], 1);
}

TEST_F(InitialScales, AreLookedForAgainAfterAReset) {
  call(1000);
  endStep();
  ASSERT_EQ(fp8rt_state_reset_slot(state, "x"), FP8RT_OK);
  EXPECT_EQ(call(500), 2);
  EXPECT_EQ(rows.scale[0], 448.0f / 500);
  ASSERT_EQ(fp8rt_state_reset(state), FP8RT_OK);
  EXPECT_EQ(call(2000), 3);
  EXPECT_EQ(rows.scale[0], 448.0f / 2000);
}

TEST_F(InitialScales, AreOfTheSlotsThatTheFunctionUses) {
  begin(R"("uses": {"chain": [0], "other": [1]},)");
  EXPECT_EQ(call(1000), 2);
  EXPECT_EQ(rows.scale[0], 448.0f / 1000);
  EXPECT_EQ(rows.scale[1], 1);
  // A function that is not there leaves all.
  begin(R"("uses": {"other": [1]},)");
  EXPECT_EQ(call(1000), 3);
  EXPECT_NE(rows.scale[1], 1);
}

TEST_F(InitialScales, EndWhereTensorsOfOneSlotGoRoundInCircles) {
  function.name = "circle";
  function.invoke = circle;
  begin(R"("uses": {"circle": [0]},)");
  EXPECT_EQ(call(1), 2);
  EXPECT_EQ(y, 448.0f / 8);
  EXPECT_EQ(rows.scale[0], y);
}

TEST_F(InitialScales, CountOneCall) {
  rows.saturated[0] = 5;
  rows.amax[0] = 3000;
  EXPECT_EQ(call(1000), 3);
  EXPECT_EQ(rows.saturated[0], 5 + (1000 * (448.0f / 1000) > 448));
  // An earlier call of the step had more.
  EXPECT_EQ(rows.amax[0], 3000);
  EXPECT_EQ(rows.scale[0], 448.0f / 1000);
  fp8rt_stats stats;
  fp8rt_stats_get(0, &stats);
  EXPECT_EQ(stats.calls, 1);
}

TEST_F(InitialScales, LeaveNothingOfACallThatFails) {
  rows.amax[0] = 3;
  EXPECT_EQ(call(-1), 1);
  EXPECT_EQ(status, FP8RT_ERROR_INVALID_ARGUMENT);
  EXPECT_STREQ(fp8rt_get_last_error(), "x is negative");
  EXPECT_EQ(rows.amax[0], 3);
  EXPECT_EQ(rows.scale[0], 1);
  EXPECT_EQ(call(1000), 3);
}

TEST_F(InitialScales, LetCallsOverlapThatNeedNone) {
  call(1000);
  endStep();
  // As after loading: nothing is known of the slots.
  ASSERT_EQ(fp8rt_state_set_scale(state, "x", 2), FP8RT_OK);
  ASSERT_EQ(fp8rt_state_set_scale(state, "y", 2), FP8RT_OK);
  function.invoke = [](void **arguments) {
    // A reader while another one runs.
    fp8rt_state_info info;
    *static_cast<float *>(arguments[2]) =
        fp8rt_state_get_info(running, &info) == FP8RT_OK;
  };
  running = state;
  call(1000);
  EXPECT_EQ(y, 1);
}
