//===- ContextTest.cpp - Where compiled programs for GPUs run -------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "EmulatedDriver.h"

#include "fp8/Runtime/Context.h"
#include "fp8/Runtime/Memory.h"
#include "fp8/Runtime/Program.h"

#include <cstring>

namespace {

constexpr char kPTX[] = "// Made by hand.\n.version 8.0\n.target sm_90a\n"
                        ".address_size 64\n.visible .entry kernel(\n"
                        ".param .u64 x)\n{ ret; }\n";
constexpr fp8rt_program_image kImage = {kPTX, sizeof(kPTX) - 1};
constexpr fp8rt_program_kernel kKernel = {&kImage, "kernel", nullptr};
constexpr fp8rt_program_kernel kMissing = {&kImage, "missing", nullptr};

class Context : public EmulatedDriver {
protected:
  void SetUp() override {
    EmulatedDriver::SetUp();
    expectOk(fp8rt_stream_create(1, &stream));
    expectOk(fp8rt_context_create(1, stream, &context));
    memory = fp8rt_context_alloc(context, 64, FP8RT_WORKSPACE_ZERO);
    ASSERT_TRUE(memory);
  }
  void TearDown() override {
    fp8rt_context_free(context, memory);
    expectOk(fp8rt_context_destroy(context));
    expectOk(fp8rt_stream_destroy(1, stream));
    EmulatedDriver::TearDown();
  }

  void launch(const fp8rt_program_kernel &kernel, uint32_t grid = 2) {
    fp8rt_launch_config config = {
        sizeof(fp8rt_launch_config), {grid, 1, 1}, {32, 1, 1}, {}, 0, 0};
    void *params[] = {&memory};
    fp8rt_context_launch(context, &kernel, &config, params);
  }
  void takeError(fp8rt_status expected, const std::string &text) {
    expectError(fp8rt_context_take_status(context), expected, text);
    expectOk(fp8rt_context_take_status(context));
  }

  fp8rt_stream stream = nullptr;
  fp8rt_context *context = nullptr;
  void *memory = nullptr;
};

TEST_F(Context, LaunchesInItsStream) {
  launch(kKernel);
  expectOk(fp8rt_context_take_status(context));
  fp8emu_launch last = getLastLaunch();
  EXPECT_EQ(last.grid[0], 2u);
  EXPECT_EQ(last.device, 1);
  EXPECT_EQ(last.stream, stream);
  EXPECT_EQ(getParam<void *>(0), memory);
}

TEST_F(Context, LaunchesInAnotherStreamWhenTold) {
  fp8rt_stream other = nullptr;
  expectOk(fp8rt_stream_create(1, &other));
  expectOk(fp8rt_context_set_stream(context, other));
  launch(kKernel);
  EXPECT_EQ(getLastLaunch().stream, other);
  expectOk(fp8rt_context_set_stream(context, stream));
  expectOk(fp8rt_stream_destroy(1, other));
}

TEST_F(Context, LoadsAModuleOnce) {
  launch(kKernel);
  launch(kKernel);
  EXPECT_EQ(getCalls("cuModuleLoadDataEx"), 1);
  EXPECT_EQ(getCalls("cuModuleGetFunction"), 1);
  EXPECT_EQ(getCalls("cuLaunchKernelEx"), 2);
}

TEST_F(Context, LaunchesNothingWithoutBlocks) {
  launch(kKernel, /*grid=*/0);
  expectOk(fp8rt_context_take_status(context));
  EXPECT_EQ(getCalls("cuLaunchKernelEx"), 0);
}

TEST_F(Context, SkipsEverythingAfterAnError) {
  launch(kMissing);
  launch(kKernel);
  char byte = 1;
  fp8rt_context_read(context, &byte, memory, 1);
  EXPECT_EQ(byte, 0);
  EXPECT_EQ(fp8rt_context_alloc(context, 64, 0), nullptr);
  EXPECT_EQ(getCalls("cuLaunchKernelEx"), 0);
  EXPECT_EQ(getCalls("cuMemcpyAsync"), 0);
  takeError(FP8RT_ERROR_NOT_FOUND, "missing");
  launch(kKernel);
  EXPECT_EQ(getCalls("cuLaunchKernelEx"), 1);
}

TEST_F(Context, KeepsTheFirstError) {
  fp8rt_context_require(context, 1, "fine");
  fp8rt_context_require(context, 0, "expected K to be 16, but got 17");
  fp8rt_context_require(context, 0, "another");
  takeError(FP8RT_ERROR_INVALID_ARGUMENT, "expected K to be 16, but got 17");
}

TEST_F(Context, FreesAfterAnError) {
  void *more = fp8rt_context_alloc(context, 64, 0);
  fp8rt_context_require(context, 0, "no");
  fp8rt_context_free(context, more);
  EXPECT_EQ(getCalls("cuMemFreeAsync"), 1);
  takeError(FP8RT_ERROR_INVALID_ARGUMENT, "no");
}

TEST_F(Context, KeepsAnErrorWhenFreeingFailsToo) {
  fp8rt_context_require(context, 0, "no");
  fail("cuMemFreeAsync", kOutOfMemory, /*times=*/1);
  fp8rt_context_free(context, memory);
  takeError(FP8RT_ERROR_INVALID_ARGUMENT, "no");
}

/// () -> (y, y), of one allocation.
static void invokeShared(void **arguments) {
  auto *results = *static_cast<fp8rt_tensor1 **>(arguments[0]);
  auto *context = *static_cast<fp8rt_context **>(arguments[1]);
  results[0] = results[1] =
      fp8rt_make_tensor1(fp8rt_context_alloc(context, 64, 0), 16);
}

/// The same, but something turns out to be wrong.
static void invokeFailing(void **arguments) {
  invokeShared(arguments);
  fp8rt_context_require(*static_cast<fp8rt_context **>(arguments[1]), 0, "no");
}

class ContextCall : public Context {
protected:
  fp8rt_status call(void (*invoke)(void **)) {
    const fp8rt_program_value infos[] = {{"y", "F32", &size, 1, 4, 16, 0},
                                         {"again", "F32", &size, 1, 4, 16, 0}};
    fp8rt_program_info info = {};
    info.version = FP8RT_VERSION;
    const fp8rt_program_function function = {
        &info, "f", invoke, nullptr, infos, 0, 2, FP8RT_FUNCTION_TAKES_CONTEXT,
        0};
    void *places[] = {&y, &again};
    return fp8rt_program_call(&function, nullptr, places, 0, context);
  }

  const int64_t size = 16;
  fp8rt_tensor1 y = {}, again = {};
};

TEST_F(ContextCall, GivesResultsAllocationsOfTheirOwn) {
  expectOk(call(invokeShared));
  EXPECT_NE(y.allocated, again.allocated);
  int live = getLiveBlocks();
  fp8rt_context_free(context, y.allocated);
  fp8rt_context_free(context, again.allocated);
  expectOk(fp8rt_context_take_status(context));
  EXPECT_EQ(getLiveBlocks(), live - 2);
}

TEST_F(ContextCall, FreesTheResultsOfACallThatFails) {
  int live = getLiveBlocks();
  expectError(call(invokeFailing), FP8RT_ERROR_INVALID_ARGUMENT, "no");
  EXPECT_EQ(y.data, nullptr);
  EXPECT_EQ(getLiveBlocks(), live);
  EXPECT_EQ(getCalls("cuMemFreeAsync"), 1);
}

TEST_F(ContextCall, FreesTheResultsThatItCannotCopy) {
  int live = getLiveBlocks();
  fail("cuMemcpyAsync", kOutOfMemory, /*times=*/1);
  expectError(call(invokeShared), FP8RT_ERROR_OUT_OF_MEMORY,
              "CUDA_ERROR_OUT_OF_MEMORY");
  EXPECT_EQ(getLiveBlocks(), live);
}

TEST_F(Context, CopiesAConstantOnce) {
  const float constant[] = {1, 2};
  void *copy = fp8rt_context_get_constant(context, constant, sizeof(constant));
  ASSERT_TRUE(copy);
  EXPECT_NE(copy, constant);
  EXPECT_EQ(std::memcmp(copy, constant, sizeof(constant)), 0);
  EXPECT_EQ(fp8rt_context_get_constant(context, constant, sizeof(constant)),
            copy);
  EXPECT_EQ(getCalls("cuMemcpyAsync"), 1);
  // The next call may be in another stream.
  EXPECT_EQ(getCalls("cuStreamSynchronize"), 1);
}

TEST_F(Context, ReadsAndWaits) {
  int32_t number = 7;
  fp8rt_context_read(context, &number, memory, sizeof(number));
  EXPECT_EQ(number, 0);
  EXPECT_EQ(getCalls("cuStreamSynchronize"), 1);
}

TEST_F(Context, NullIsAContextThatHasFailed) {
  EXPECT_EQ(fp8rt_context_alloc(nullptr, 64, 0), nullptr);
  fp8rt_context_launch_kernel(nullptr, &kKernel, nullptr, nullptr);
  fp8rt_context_copy(nullptr, memory, memory, 4);
  fp8rt_context_require(nullptr, 0, "no");
  expectError(fp8rt_context_take_status(nullptr), FP8RT_ERROR_INVALID_ARGUMENT,
              "context");
  expectOk(fp8rt_context_destroy(nullptr));
}

TEST_F(Context, ChecksWhoseMemoryItIs) {
  fp8rt_context_check_memory(context, memory, 16, "argument 0");
  fp8rt_context_check_memory(context, nullptr, 0, "argument 1");
  expectOk(fp8rt_context_take_status(context));
  int onHost = 0;
  fp8rt_context_check_memory(context, &onHost, 1, "argument 0");
  launch(kKernel);
  EXPECT_EQ(getCalls("cuLaunchKernelEx"), 0);
  takeError(FP8RT_ERROR_WRONG_DEVICE,
            "expected argument 0 on device 1, but got one in host memory");
  fp8rt_context_check_memory(context, nullptr, 1, "argument 0");
  takeError(FP8RT_ERROR_INVALID_ARGUMENT, "argument 0");
}

} // namespace
