//===- FakeDriver.h - Tests with the fake CUDA driver -----------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_TEST_UNIT_RUNTIME_CUDA_FAKEDRIVER_H
#define FP8_TEST_UNIT_RUNTIME_CUDA_FAKEDRIVER_H

#include "fake_cuda.h"

#include "fp8/Runtime/Status.h"

#include "gtest/gtest.h"

#include <cstdlib>
#include <dlfcn.h>
#include <string>

/// The driver's numbers for errors.
enum FakeError {
  kOutOfMemory = 2,
  kIllegalAddress = 700,
  kLaunchOutOfResources = 701,
};

/// Makes libfp8rt load the fake driver, and undoes after a test what the test
/// did to it.
class FakeDriver : public testing::Test {
protected:
  static void SetUpTestSuite() {
    setenv("FP8_CUDA_DRIVER", FP8_FAKE_CUDA, /*overwrite=*/1);
    library = dlopen(FP8_FAKE_CUDA, RTLD_NOW | RTLD_LOCAL);
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

  static void reset() { get<fake_cuda_reset_fn>("fake_cuda_reset")(); }
  static void fail(const char *function, int result, int times = -1) {
    get<fake_cuda_fail_fn>("fake_cuda_fail")(function, result, times);
  }
  static int getCalls(const char *function) {
    return get<fake_cuda_calls_fn>("fake_cuda_calls")(function);
  }
  static void lose(int device) {
    get<fake_cuda_lose_fn>("fake_cuda_lose")(device);
  }
  static void capture(void *stream, bool capturing) {
    get<fake_cuda_capture_fn>("fake_cuda_capture")(stream, capturing);
  }
  static int getLiveBlocks() {
    return get<fake_cuda_live_blocks_fn>("fake_cuda_live_blocks")();
  }
  static fake_launch getLastLaunch() {
    fake_launch launch;
    get<fake_cuda_last_launch_fn>("fake_cuda_last_launch")(&launch);
    return launch;
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

#endif // FP8_TEST_UNIT_RUNTIME_CUDA_FAKEDRIVER_H
