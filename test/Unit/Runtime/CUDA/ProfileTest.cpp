//===- ProfileTest.cpp - Times of kernels and copies ----------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "EmulatedDriver.h"

#include "fp8/Runtime/Memory.h"
#include "fp8/Runtime/Profile.h"

namespace {

constexpr char kPTX[] = ".version 8.0\n.target sm_90a\n.address_size 64\n"
                        ".visible .entry plain(\n.param .u64 x)\n{ ret; }\n"
                        ".visible .entry described(\n.param .u64 y,\n"
                        ".param .u64 stride)\n{ ret; }\n";
constexpr char kLaunch[] = R"({
  "version": 2,
  "arguments": [{"name": "x", "type": "bf16", "rank": 2, "access": "read",
                 "alignment": 2},
                {"name": "y", "type": "f32", "rank": 1, "access": "update",
                 "alignment": 4}],
  "extents": [{"name": "m", "argument": 0, "dim": 0}],
  "params": [{"pointer": 1}, {"stride": 0, "dim": 0}], "workspaces": [], "grid": ["m"],
  "block": 32, "cluster": 1, "shared_bytes": 0, "resident": 0,
  "overlap": false, "flops": "m 1000 *"
})";
constexpr fp8rt_program_image kImage = {kPTX, sizeof(kPTX) - 1};
constexpr fp8rt_program_kernel kPlain = {&kImage, "plain", nullptr};
constexpr fp8rt_program_kernel kDescribed = {&kImage, "described", kLaunch};

class Profile : public EmulatedDriver {
protected:
  void SetUp() override {
    EmulatedDriver::SetUp();
    expectOk(fp8rt_stream_create(1, &stream));
    expectOk(fp8rt_context_create(1, stream, &context));
    memory = fp8rt_context_alloc(context, 4096, 0);
    ASSERT_TRUE(memory);
  }
  void TearDown() override {
    fp8rt_context_free(context, memory);
    expectOk(fp8rt_context_destroy(context));
    expectOk(fp8rt_stream_destroy(1, stream));
    // Whatever happened, no event is left.
    EXPECT_EQ(getCalls("cuEventCreate"), getCalls("cuEventDestroy"));
    EmulatedDriver::TearDown();
  }

  void launchPlain() {
    fp8rt_launch_config config = {
        sizeof(fp8rt_launch_config), {2, 1, 1}, {32, 1, 1}, {}, 0, 0};
    void *params[] = {&memory};
    fp8rt_context_launch(context, &kPlain, &config, params);
  }
  /// `broadcast` repeats one row of x.
  void launchDescribed(int64_t rows = 8, bool broadcast = false) {
    fp8rt_kernel_argument arguments[] = {
        {memory, {rows, 16}, {broadcast ? 0 : 16, 1}}, {memory, {16}, {1}}};
    fp8rt_context_launch_kernel(context, &kDescribed, arguments, nullptr);
  }
  std::vector<fp8rt_profile_entry> stop() {
    expectOk(fp8rt_context_stop_profile(context));
    std::vector<fp8rt_profile_entry> entries(
        static_cast<size_t>(fp8rt_context_get_profile_size(context)));
    for (size_t i = 0; i < entries.size(); ++i)
      expectOk(fp8rt_context_get_profile_entry(context, static_cast<int64_t>(i),
                                               &entries[i]));
    return entries;
  }

  fp8rt_stream stream = nullptr;
  fp8rt_context *context = nullptr;
  void *memory = nullptr;
};

TEST_F(Profile, CostsNothingBeforeAndAfter) {
  launchPlain();
  EXPECT_EQ(getCalls("cuEventRecord"), 0);
  expectOk(fp8rt_context_start_profile(context));
  EXPECT_EQ(stop().size(), 0u);
  launchPlain();
  EXPECT_EQ(getCalls("cuEventRecord"), 0);
  EXPECT_EQ(getCalls("cuStreamIsCapturing"), 0);
}

TEST_F(Profile, TimesWhatTheContextDoes) {
  expectOk(fp8rt_context_start_profile(context));
  launchPlain();
  launchDescribed();
  launchDescribed(/*rows=*/8, /*broadcast=*/true);
  fp8rt_context_copy(context, memory, memory, 100);
  void *zeros = fp8rt_context_alloc(context, 64, FP8RT_WORKSPACE_ZERO);
  int32_t word;
  fp8rt_context_read(context, &word, memory, sizeof(word));
  fp8rt_context_free(context, zeros);
  expectOk(fp8rt_context_take_status(context));
  auto entries = stop();
  const struct {
    const char *name;
    int32_t kind;
    double bytes, flops;
  } expected[] = {
      {"plain", FP8RT_PROFILE_KERNEL, 0, 0},
      // Read are 8 x 16 elements of 2 bytes, 16 of 4 are read and written.
      {"described", FP8RT_PROFILE_KERNEL, 256 + 128, 8000},
      {"described", FP8RT_PROFILE_KERNEL, 32 + 128, 8000},
      {"copy", FP8RT_PROFILE_COPY, 200, 0},
      {"fill", FP8RT_PROFILE_FILL, 64, 0},
      {"read", FP8RT_PROFILE_READ, 4, 0},
  };
  ASSERT_EQ(entries.size(), std::size(expected));
  double end = 0;
  for (size_t i = 0; i < entries.size(); ++i) {
    EXPECT_STREQ(entries[i].name, expected[i].name);
    EXPECT_EQ(entries[i].kind, expected[i].kind);
    EXPECT_EQ(entries[i].bytes, expected[i].bytes) << i;
    EXPECT_EQ(entries[i].flops, expected[i].flops) << i;
    EXPECT_GE(entries[i].start_ms, end) << i;
    EXPECT_GT(entries[i].duration_ms, 0) << i;
    end = entries[i].start_ms + entries[i].duration_ms;
  }
  EXPECT_EQ(entries[0].start_ms, 0);
}

TEST_F(Profile, LeavesOutWhatIsNothing) {
  expectOk(fp8rt_context_start_profile(context));
  fp8rt_context_copy(context, memory, memory, 0);
  fp8rt_context_free(context, fp8rt_context_alloc(context, 64, 0));
  fp8rt_launch_config config = {
      sizeof(fp8rt_launch_config), {0, 1, 1}, {32, 1, 1}, {}, 0, 0};
  fp8rt_context_launch(context, &kPlain, &config, nullptr);
  expectOk(fp8rt_context_take_status(context));
  EXPECT_EQ(stop().size(), 0u);
}

TEST_F(Profile, ForgetsAnEarlierOne) {
  expectOk(fp8rt_context_start_profile(context));
  launchPlain();
  expectOk(fp8rt_context_start_profile(context));
  EXPECT_EQ(fp8rt_context_get_profile_size(context), 0);
  launchDescribed();
  auto entries = stop();
  ASSERT_EQ(entries.size(), 1u);
  EXPECT_STREQ(entries[0].name, "described");
  // What was stopped stays.
  EXPECT_EQ(stop().size(), 1u);
}

TEST_F(Profile, TimesNothingInACapture) {
  launchPlain();
  expectOk(fp8rt_context_start_profile(context));
  capture(stream, true);
  launchPlain();
  capture(stream, false);
  expectOk(fp8rt_context_take_status(context));
  launchPlain();
  EXPECT_EQ(stop().size(), 1u);
}

TEST_F(Profile, GoesOnAfterALaunchThatFails) {
  expectOk(fp8rt_context_start_profile(context));
  launchPlain();
  fail("cuLaunchKernelEx", kLaunchOutOfResources, 1);
  launchPlain();
  expectError(fp8rt_context_take_status(context), FP8RT_ERROR_CUDA, "plain");
  launchDescribed();
  auto entries = stop();
  ASSERT_EQ(entries.size(), 2u);
  EXPECT_STREQ(entries[1].name, "described");
  expectOk(fp8rt_context_start_profile(context));
  fail("cuLaunchKernelEx", kLaunchOutOfResources, 1);
  launchPlain();
  expectError(fp8rt_context_take_status(context), FP8RT_ERROR_CUDA, "plain");
  EXPECT_EQ(stop().size(), 0u);
}

TEST_F(Profile, ReportsWhatTheWorkFailedWith) {
  expectOk(fp8rt_context_start_profile(context));
  launchPlain();
  fail("cuEventSynchronize", kIllegalAddress, 1);
  expectError(fp8rt_context_stop_profile(context), FP8RT_ERROR_DEVICE_LOST,
              "wait for an event");
  EXPECT_EQ(fp8rt_context_get_profile_size(context), 0);
}

TEST_F(Profile, RefusesWhatThereIsNot) {
  fp8rt_profile_entry entry;
  expectError(fp8rt_context_start_profile(nullptr),
              FP8RT_ERROR_INVALID_ARGUMENT, "expected context");
  expectError(fp8rt_context_stop_profile(nullptr), FP8RT_ERROR_INVALID_ARGUMENT,
              "expected context");
  EXPECT_EQ(fp8rt_context_get_profile_size(nullptr), 0);
  expectOk(fp8rt_context_stop_profile(context));
  for (int64_t index : {-1, 0})
    expectError(fp8rt_context_get_profile_entry(context, index, &entry),
                FP8RT_ERROR_INVALID_ARGUMENT,
                "the index of one of 0 entries of a profile");
  expectError(fp8rt_context_get_profile_entry(context, 0, nullptr),
              FP8RT_ERROR_INVALID_ARGUMENT, "expected entry");
}

} // namespace
