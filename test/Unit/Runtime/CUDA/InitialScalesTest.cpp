//===- InitialScalesTest.cpp - Tensors that are new, on a GPU -------------===//
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

#include <algorithm>
#include <vector>

namespace {

constexpr char kManifest[] =
    R"({"version": 1, "amax_history_len": 4, "uses": {"chain": [0, 1]},
        "slots": [{"name": "x", "format": "e4m3"},
                  {"name": "y", "format": "e5m2"},
                  {"name": "of another", "format": "e4m3"}]})";
constexpr char kRecipe[] =
    "delayed,amax_history_len=4,amax_compute_algo=max,margin=0,"
    "reduce_amax=true,compat=te_fused,pow2=false,initial=auto";

int calls;
float x;

/// What the function of the same name in ../InitialScalesTest.cpp does, as work
/// in the stream.
void chain(void **arguments) {
  auto &rows = **static_cast<fp8rt_state_rows **>(arguments[0]);
  auto *context = *static_cast<fp8rt_context **>(arguments[1]);
  ++calls;
  float scale, amax[2];
  fp8rt_context_read(context, &scale, rows.scale, sizeof(scale));
  fp8rt_context_read(context, amax, rows.amax, sizeof(amax));
  amax[0] = std::max(amax[0], x);
  amax[1] = std::max(amax[1], std::min(x * scale, 448.0f) / scale);
  fp8rt_context_copy(context, rows.amax, amax, sizeof(amax));
}

/// Launches something, so to say, and reads nothing.
void launch(void **) { ++calls; }

void update(void **) {}

class DeviceInitialScales : public EmulatedDriver {
protected:
  void SetUp() override {
    EmulatedDriver::SetUp();
    calls = 0;
    x = 1000;
    function.program = &info;
    function.name = "chain";
    function.invoke = chain;
    function.flags = FP8RT_FUNCTION_TAKES_STATE | FP8RT_FUNCTION_TAKES_CONTEXT;
    info.version = FP8RT_VERSION;
    info.num_functions = 1;
    info.functions = &function;
    info.name = "test";
    info.state_manifest = kManifest;
    info.num_slots = 3;
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

  int call() {
    calls = 0;
    expectOk(fp8rt_program_call(&function, nullptr, nullptr, state, context));
    return calls;
  }
  float getScale(const char *slot) {
    float scale = 0;
    expectOk(fp8rt_state_download(state, stream));
    expectOk(fp8rt_state_get_scale(state, slot, &scale));
    return scale;
  }

  fp8rt_program_function function = {};
  fp8rt_program_info info = {};
  fp8rt_stream stream = nullptr;
  fp8rt_context *context = nullptr;
  fp8rt_state state = 0;
};

TEST_F(DeviceInitialScales, AreThoseOfTheTensors) {
  EXPECT_EQ(call(), 3);
  // The device has them, for who looks for the rows next.
  float scale;
  expectError(fp8rt_state_get_scale(state, "x", &scale), FP8RT_ERROR_ON_DEVICE,
              "");
  EXPECT_EQ(getScale("x"), 448.0f / 1000);
  EXPECT_EQ(getScale("of another"), 1);
  fp8rt_state_rows rows;
  expectOk(fp8rt_state_get_rows(state, &rows));
  EXPECT_EQ(rows.amax[0], 1000);
  EXPECT_FLOAT_EQ(rows.scale[1], 57344.0f / 1000);
}

TEST_F(DeviceInitialScales, AreNotWaitedForOnceTheyAreThere) {
  call();
  expectOk(fp8rt_program_update_state(&info, state, context));
  function.invoke = launch;
  int copies = getCalls("cuMemcpyAsync");
  int waits = getCalls("cuStreamSynchronize");
  for (int i = 0; i < 10; ++i)
    EXPECT_EQ(call(), 1);
  EXPECT_EQ(getCalls("cuMemcpyAsync"), copies);
  EXPECT_EQ(getCalls("cuStreamSynchronize"), waits);
}

TEST_F(DeviceInitialScales, AreNotWaitedForWithoutEnd) {
  for (int i = 0; i < 16; ++i)
    call();
  int waits = getCalls("cuStreamSynchronize");
  function.invoke = launch;
  EXPECT_EQ(call(), 1);
  EXPECT_EQ(getCalls("cuStreamSynchronize"), waits);
}

TEST_F(DeviceInitialScales, AreNotLookedForInACapture) {
  // The state is where the program runs.
  fp8rt_state_rows rows;
  expectOk(fp8rt_state_upload(state, 1, stream, &rows));
  function.invoke = launch;
  capture(stream, true);
  EXPECT_EQ(call(), 1);
  capture(stream, false);
  function.invoke = chain;
  EXPECT_EQ(call(), 3);
  EXPECT_EQ(getScale("x"), 448.0f / 1000);
}

TEST_F(DeviceInitialScales, AreEachCallsOwnWhileFrozen) {
  expectOk(fp8rt_state_freeze(state));
  EXPECT_EQ(call(), 3);
  EXPECT_EQ(getScale("x"), 1);
  x = 500;
  EXPECT_EQ(call(), 3);
  EXPECT_EQ(getScale("x"), 1);
}

} // namespace
