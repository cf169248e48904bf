//===- EmulatedDriver.h - Tests with the emulator as driver -----*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_TEST_UNIT_RUNTIME_CUDA_EMULATEDDRIVER_H
#define FP8_TEST_UNIT_RUNTIME_CUDA_EMULATEDDRIVER_H

#include "Driver/Control.h"

#include "fp8/Runtime/Status.h"

#include "gtest/gtest.h"

#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <string>

/// The driver's numbers for errors.
enum DriverError {
  kOutOfMemory = 2,
  kIllegalAddress = 700,
  kLaunchOutOfResources = 701,
};

/// Makes libfp8rt load the emulator, with two devices of 132 multiprocessors
/// and 1 GiB, and undoes after a test what the test did to it.
class EmulatedDriver : public testing::Test {
protected:
  static void SetUpTestSuite() {
    setenv("FP8_CUDA_DRIVER", FP8_EMULATOR, /*overwrite=*/1);
    setenv("FP8_EMULATOR_VERSION", "12080", /*overwrite=*/1);
    setenv("FP8_EMULATOR_DEVICES", "2", /*overwrite=*/1);
    setenv("FP8_EMULATOR_SMS", "132", /*overwrite=*/1);
    setenv("FP8_EMULATOR_MEMORY", "1073741824", /*overwrite=*/1);
    library = dlopen(FP8_EMULATOR, RTLD_NOW | RTLD_LOCAL);
    ASSERT_TRUE(library) << dlerror();
  }
  void SetUp() override {
    reset();
    liveBefore = getLiveBlocks();
  }
  void TearDown() override {
    reset();
    EXPECT_EQ(getLiveBlocks(), liveBefore) << "memory was not freed";
  }

  static void reset() { get<fp8emu_reset_fn>("fp8emu_reset")(); }
  static void fail(const char *function, int error, int times = -1) {
    get<fp8emu_fail_fn>("fp8emu_fail")(function, error, times);
  }
  static int getCalls(const char *function) {
    int calls = get<fp8emu_count_calls_fn>("fp8emu_count_calls")(function);
    EXPECT_GE(calls, 0) << "the driver has no function " << function;
    return calls;
  }
  static void lose(int device) { get<fp8emu_lose_fn>("fp8emu_lose")(device); }
  static int getLiveBlocks() {
    return get<fp8emu_count_allocations_fn>("fp8emu_count_allocations")();
  }
  static fp8emu_launch getLastLaunch() {
    fp8emu_launch launch;
    get<fp8emu_get_last_launch_fn>("fp8emu_get_last_launch")(&launch);
    return launch;
  }
  /// A parameter of the last launch.
  template <typename T>
  static T getParam(unsigned index) {
    fp8emu_launch last = getLastLaunch();
    EXPECT_LT(index, last.num_params);
    EXPECT_EQ(last.param_bytes[index], sizeof(T));
    T value;
    std::memcpy(&value, last.params[index], sizeof(T));
    return value;
  }

  /// Begins or ends a capture in global mode, as a framework would; while it
  /// lasts, what could break it fails, but for threads in relaxed mode.
  static void capture(void *stream, bool capturing) {
    void *context = nullptr, *graph = nullptr;
    get<int (*)(void **, int)>("cuDevicePrimaryCtxRetain")(&context, 0);
    get<int (*)(void *)>("cuCtxPushCurrent_v2")(context);
    if (capturing) {
      EXPECT_EQ(get<int (*)(void *, int)>("cuStreamBeginCapture_v2")(stream, 0),
                0);
    } else {
      // One that a test has broken has no graph.
      get<int (*)(void *, void **)>("cuStreamEndCapture")(stream, &graph);
      if (graph)
        get<int (*)(void *)>("cuGraphDestroy")(graph);
    }
    get<int (*)(void **)>("cuCtxPopCurrent_v2")(nullptr);
  }

  /// The call returned `expected`, and its message has `text` in it.
  static void expectError(fp8rt_status status, fp8rt_status expected,
                          const std::string &text) {
    EXPECT_STREQ(fp8rt_stringify_status(status),
                 fp8rt_stringify_status(expected));
    EXPECT_NE(std::string(fp8rt_get_last_error()).find(text), std::string::npos)
        << "expected '" << text << "' in '" << fp8rt_get_last_error() << "'";
  }
  static void expectOk(fp8rt_status status) {
    EXPECT_EQ(status, FP8RT_OK) << fp8rt_get_last_error();
  }

private:
  template <typename Function>
  static Function get(const char *name) {
    return reinterpret_cast<Function>(dlsym(library, name));
  }

  static inline void *library = nullptr;
  int liveBefore = 0;
};

#endif // FP8_TEST_UNIT_RUNTIME_CUDA_EMULATEDDRIVER_H
