//===- ProgramStateTest.cpp - The end of a step of a program --------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A program written by hand, whose update is seen to be called, and how. That
// of programs for a GPU is in CUDA/ProgramStateTest.cpp.
//
//===----------------------------------------------------------------------===//

#include "fp8/Runtime/Program.h"

#include "gtest/gtest.h"

#include <cfenv>
#include <string>

namespace {

constexpr char kManifest[] =
    R"({"version": 1, "recipe": "acme.ema", "words": 1, "decay": 0.5,
        "slots": [{"name": "x", "format": "e4m3"},
                  {"name": "w", "format": "e5m2"}]})";

int calls;
int rounding;

/// scale[1] = amax[1], and a step.
void update(void **arguments) {
  auto *rows = *static_cast<fp8rt_state_rows **>(arguments[0]);
  ++calls;
  rounding = std::fegetround();
  rows->scale[1] = rows->amax[1];
  rows->amax[1] = 0;
  rows->words[1] = 7;
  ++*rows->steps;
}

void give(void **) { fp8rt_program_fail("no more"); }

class ProgramState : public testing::Test {
protected:
  void SetUp() override {
    calls = 0;
    info.version = FP8RT_VERSION;
    info.num_functions = 1;
    info.functions = &function;
    info.name = "test";
    info.state_manifest = kManifest;
    info.num_slots = 2;
    info.num_words = 1;
    info.state_recipe = "acme.ema,decay=0.5";
    info.update_state = update;
    ASSERT_EQ(fp8rt_program_create_state(&info, &state), FP8RT_OK);
    ASSERT_EQ(fp8rt_state_get_rows(state, &rows), FP8RT_OK);
  }
  void TearDown() override { fp8rt_state_destroy(state); }

  fp8rt_status run() {
    return fp8rt_program_update_state(&info, state, /*context=*/nullptr);
  }
  void expectError(fp8rt_status status, const std::string &message) {
    EXPECT_STREQ(fp8rt_stringify_status(run()), fp8rt_stringify_status(status));
    EXPECT_EQ(fp8rt_get_last_error(), message);
    EXPECT_EQ(calls, 0);
  }

  fp8rt_program_function function = {};
  fp8rt_program_info info = {};
  fp8rt_state state = 0;
  fp8rt_state_rows rows;
};

} // namespace

TEST_F(ProgramState, WorksOnTheRows) {
  rows.amax[1] = 3;
  ASSERT_EQ(run(), FP8RT_OK);
  EXPECT_EQ(calls, 1);
  float scale;
  ASSERT_EQ(fp8rt_state_get_scale(state, "w", &scale), FP8RT_OK);
  EXPECT_EQ(scale, 3);
  EXPECT_EQ(rows.words[1], 7);
  fp8rt_state_info seen;
  ASSERT_EQ(fp8rt_state_get_info(state, &seen), FP8RT_OK);
  EXPECT_EQ(seen.steps, 1);
}

TEST_F(ProgramState, DoesNotDependOnTheThread) {
  std::fesetround(FE_UPWARD);
  EXPECT_EQ(run(), FP8RT_OK);
  EXPECT_EQ(std::fegetround(), FE_UPWARD);
  std::fesetround(FE_TONEAREST);
  EXPECT_EQ(rounding, FE_TONEAREST);
}

TEST_F(ProgramState, ClearsWhatAFrozenOneRecorded) {
  rows.amax[0] = 1;
  ASSERT_EQ(fp8rt_state_freeze(state), FP8RT_OK);
  rows.amax[1] = 3;
  rows.saturated[0] = 4;
  ASSERT_EQ(run(), FP8RT_OK);
  EXPECT_EQ(calls, 0);
  EXPECT_EQ(rows.amax[1], 0);
  EXPECT_EQ(rows.saturated[0], 0);
  ASSERT_EQ(fp8rt_state_unfreeze(state), FP8RT_OK);
  EXPECT_EQ(rows.amax[0], 1);
}

TEST_F(ProgramState, RefusesStatesOfAnother) {
  const char *slots = "expected a state of program 'test', with ";
  const char *got =
      ", but got 2 slots of 1 words and the recipe 'acme.ema,decay=0.5'";
  info.num_slots = 3;
  expectError(FP8RT_ERROR_MISMATCH,
              std::string(slots) +
                  "3 slots of 1 words and the recipe 'acme.ema,decay=0.5'" +
                  got);
  info.num_slots = 2;
  info.num_words = 2;
  expectError(FP8RT_ERROR_MISMATCH,
              std::string(slots) +
                  "2 slots of 2 words and the recipe 'acme.ema,decay=0.5'" +
                  got);
  info.num_words = 1;
  info.state_recipe = "acme.ema,decay=0.25";
  expectError(FP8RT_ERROR_MISMATCH,
              std::string(slots) +
                  "2 slots of 1 words and the recipe 'acme.ema,decay=0.25'" +
                  got);
}

TEST_F(ProgramState, RefusesProgramsWithoutOne) {
  info.state_manifest = nullptr;
  expectError(FP8RT_ERROR_INVALID_ARGUMENT,
              "expected program 'test' to have a scaling state");
  // Where such a program ends, there is no update to look for.
  info.state_manifest = kManifest;
  info.update_state = nullptr;
  expectError(FP8RT_ERROR_INVALID_ARGUMENT,
              "expected program 'test' to have the update of its state, but "
              "got null");
  info.version = FP8RT_VERSION + 1000;
  EXPECT_EQ(run(), FP8RT_ERROR_VERSION);
}

TEST_F(ProgramState, WantsAContextOnAGPU) {
  function.flags = FP8RT_FUNCTION_TAKES_CONTEXT;
  expectError(FP8RT_ERROR_INVALID_ARGUMENT,
              "expected a context for program 'test', which runs on a GPU, but "
              "got null");
}

TEST_F(ProgramState, SaysWhatTheProgramSays) {
  info.update_state = give;
  expectError(FP8RT_ERROR_INVALID_ARGUMENT, "no more");
  // The state can be used again.
  info.update_state = update;
  EXPECT_EQ(run(), FP8RT_OK);
}

TEST_F(ProgramState, RefusesNullAndStaleStates) {
  EXPECT_EQ(fp8rt_program_update_state(nullptr, state, nullptr),
            FP8RT_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(fp8rt_program_update_state(&info, 0, nullptr),
            FP8RT_ERROR_INVALID_HANDLE);
}
