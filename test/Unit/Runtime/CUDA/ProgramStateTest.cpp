//===- ProgramStateTest.cpp - The end of a step on a GPU ------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "EmulatedDriver.h"

#include "fp8/Runtime/DeviceState.h"
#include "fp8/Runtime/Memory.h"
#include "fp8/Runtime/Program.h"

#include <vector>

namespace {

constexpr char kManifest[] =
    R"({"version": 1, "amax_history_len": 4,
        "slots": [{"name": "x", "format": "e4m3"},
                  {"name": "w", "format": "e4m3"}]})";
constexpr char kRecipe[] =
    "delayed,amax_history_len=4,amax_compute_algo=max,margin=0,"
    "reduce_amax=true,compat=te_fused,pow2=false,initial=auto";

fp8rt_state_rows seen;
fp8rt_context *seenContext;
int calls;

void update(void **arguments) {
  seen = **static_cast<fp8rt_state_rows **>(arguments[0]);
  seenContext = *static_cast<fp8rt_context **>(arguments[1]);
  ++calls;
}

void refuse(void **arguments) {
  fp8rt_context_require(*static_cast<fp8rt_context **>(arguments[1]),
                        /*condition=*/0, "not today");
}

class DeviceProgramState : public EmulatedDriver {
protected:
  void SetUp() override {
    EmulatedDriver::SetUp();
    calls = 0;
    function.flags = FP8RT_FUNCTION_TAKES_STATE | FP8RT_FUNCTION_TAKES_CONTEXT;
    info.version = FP8RT_VERSION;
    info.num_functions = 1;
    info.functions = &function;
    info.name = "test";
    info.state_manifest = kManifest;
    info.num_slots = 2;
    info.num_words = 5;
    info.state_recipe = kRecipe;
    info.update_state = update;
    expectOk(fp8rt_stream_create(1, &stream));
    expectOk(fp8rt_context_create(1, stream, &context));
    expectOk(fp8rt_program_create_state(&info, &state));
  }
  void TearDown() override {
    expectOk(fp8rt_state_destroy(state));
    expectOk(fp8rt_context_destroy(context));
    expectOk(fp8rt_stream_destroy(1, stream));
    EmulatedDriver::TearDown();
  }

  fp8rt_status run() {
    return fp8rt_program_update_state(&info, state, context);
  }
  std::vector<float> read(const float *row) {
    std::vector<float> values(2);
    expectOk(
        fp8rt_memory_copy(1, values.data(), row, 2 * sizeof(float), stream));
    expectOk(fp8rt_stream_synchronize(1, stream));
    return values;
  }

  fp8rt_program_function function = {};
  fp8rt_program_info info = {};
  fp8rt_stream stream = nullptr;
  fp8rt_context *context = nullptr;
  fp8rt_state state = 0;
};

TEST_F(DeviceProgramState, WorksOnTheRowsOfTheDevice) {
  fp8rt_state_rows rows;
  expectOk(run());
  expectOk(fp8rt_state_upload(state, 1, stream, &rows));
  EXPECT_EQ(seen.amax, rows.amax);
  EXPECT_EQ(seen.words, rows.words);
  EXPECT_EQ(seen.steps, rows.steps);
  EXPECT_EQ(seen.num_words, 5);
  EXPECT_EQ(seenContext, context);
  // From now on the device has the values.
  float scale;
  expectError(fp8rt_state_get_scale(state, "x", &scale), FP8RT_ERROR_ON_DEVICE,
              "");
}

TEST_F(DeviceProgramState, NeitherCopiesNorWaits) {
  expectOk(run());
  int copies = getCalls("cuMemcpyAsync");
  int waits = getCalls("cuStreamSynchronize");
  for (int step = 0; step < 10; ++step)
    expectOk(run());
  EXPECT_EQ(calls, 11);
  EXPECT_EQ(getCalls("cuMemcpyAsync"), copies);
  EXPECT_EQ(getCalls("cuStreamSynchronize"), waits);
  // So it can be captured.
  capture(stream, true);
  expectOk(run());
  capture(stream, false);
}

TEST_F(DeviceProgramState, ClearsWhatAFrozenOneRecorded) {
  fp8rt_state_rows rows;
  expectOk(fp8rt_state_freeze(state));
  expectOk(fp8rt_state_upload(state, 1, stream, &rows));
  std::vector<float> amax = {3, 5};
  std::vector<int64_t> counts = {1, 2};
  expectOk(fp8rt_memory_copy(1, rows.amax, amax.data(), 8, stream));
  expectOk(fp8rt_memory_copy(1, rows.underflow, counts.data(), 16, stream));
  expectOk(fp8rt_memory_copy(1, rows.saturated, counts.data(), 16, stream));
  expectOk(fp8rt_memory_copy(1, rows.recorded, counts.data(), 16, stream));
  expectOk(run());
  EXPECT_EQ(calls, 0);
  EXPECT_EQ(read(rows.amax), (std::vector<float>{0, 0}));
  EXPECT_EQ(read(rows.scale), (std::vector<float>{1, 1}));
  expectOk(fp8rt_state_download(state, stream));
  fp8rt_state_statistics statistics;
  expectOk(fp8rt_state_get_statistics(state, 1, &statistics));
  EXPECT_EQ(statistics.underflow, 0);
  EXPECT_EQ(statistics.saturated, 0);
  EXPECT_EQ(statistics.recorded, 2);
}

TEST_F(DeviceProgramState, SaysWhatTheContextSays) {
  info.update_state = refuse;
  expectError(run(), FP8RT_ERROR_INVALID_ARGUMENT, "not today");
  info.update_state = update;
  expectOk(run());
}

TEST_F(DeviceProgramState, RefusesAnotherDevice) {
  fp8rt_state_rows rows;
  expectOk(fp8rt_state_upload(state, 0, nullptr, &rows));
  expectError(run(), FP8RT_ERROR_WRONG_DEVICE, "expected device 0");
  expectOk(fp8rt_state_download(state, nullptr));
}

} // namespace
