//===- ForkTest.cpp - Tests of the runtime in children of fork() ----------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fp8/Runtime/Device.h"
#include "fp8/Runtime/Gemm.h"
#include "fp8/Runtime/Parallel.h"
#include "fp8/Runtime/ScalingState.h"
#include "fp8/Runtime/Status.h"

#include "gtest/gtest.h"

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

namespace {
/// The exit status of a child that runs `body`, or minus the signal that ended
/// it: SIGALRM if it waits for what never comes.
template <typename Body>
int runInChild(Body body) {
  pid_t child = fork();
  if (child == 0) {
    alarm(120);
    _exit(body());
  }
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child)
    return -1000;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

/// The sum of 0 to 999, a term an iteration.
int64_t sumInLoop() {
  std::atomic<int64_t> sum{0};
  auto body = [](int64_t begin, int64_t end, void *context) {
    for (int64_t i = begin; i < end; ++i)
      *static_cast<std::atomic<int64_t> *>(context) += i;
  };
  using Body = void (*)(int64_t, int64_t, void *);
  fp8rt_parallel_for(1000, reinterpret_cast<void *>(static_cast<Body>(body)),
                     &sum);
  return sum;
}

/// A product that oneDNN gives all threads.
bool multiplies() {
  constexpr int64_t size = 512;
  std::vector<float> one(size * size, 1.0f), sums(size * size);
  fp8rt_memref3d_f32 a{
      one.data(), one.data(), 0, {1, size, size}, {size * size, size, 1}};
  fp8rt_memref3d_f32 c = a;
  c.allocated = c.data = sums.data();
  _mlir_ciface_fp8rt_gemm_f32(&a, &a, &c);
  return sums == std::vector<float>(size * size, float(size));
}

class ForkTest : public testing::Test {
protected:
  void SetUp() override {
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
    GTEST_SKIP() << "ThreadSanitizer has no threads in a child of fork()";
#endif
#endif
  }
};

TEST_F(ForkTest, LoopsInChildAndParent) {
  ASSERT_EQ(sumInLoop(), 499500);
  auto body = [] { return sumInLoop() == 499500 ? 0 : 1; };
  EXPECT_EQ(runInChild(body), 0);
  EXPECT_EQ(sumInLoop(), 499500);
  EXPECT_EQ(runInChild([&] { return body() + runInChild(body); }), 0);
}

TEST_F(ForkTest, MultipliesInChildAndParent) {
  ASSERT_TRUE(multiplies());
  EXPECT_EQ(runInChild([] { return multiplies() ? 0 : 1; }), 0);
  EXPECT_TRUE(multiplies());
}

TEST_F(ForkTest, ForksInAThreadThatHasMultiplied) {
  std::thread([] {
    ASSERT_TRUE(multiplies());
    EXPECT_EQ(runInChild([] { return multiplies() ? 0 : 1; }), 0);
  }).join();
}

// Locks that another thread has at that moment.
TEST_F(ForkTest, ForksWhileOthersUseStates) {
  std::atomic<bool> done{false};
  std::thread other([&] {
    while (!done) {
      fp8rt_state_info info;
      fp8rt_state_get_info(/*state=*/0, &info);
    }
  });
  for (int i = 0; i < 50; ++i) {
    int status = runInChild([] {
      fp8rt_state_info info;
      return fp8rt_state_get_info(/*state=*/0, &info);
    });
    EXPECT_EQ(status, FP8RT_ERROR_INVALID_HANDLE);
    if (status < 0)
      break;
  }
  done = true;
  other.join();
}

// Before the first use of a GPU nothing is lost, after it the child is told.
TEST_F(ForkTest, UsesAGPUOnlyInOneProcess) {
  auto useGPU = [] {
    int32_t count;
    return fp8rt_device_get_count(&count);
  };
  // In a child that forks again, as this process may have a driver already.
  auto start = [&] {
    setenv("FP8_CUDA_DRIVER", FP8_EMULATOR, /*overwrite=*/1);
    int before = runInChild(useGPU);
    if (before == FP8RT_ERROR_DEVICE_LOST)
      return 100; // other tests were first
    if (before != FP8RT_OK || useGPU() != FP8RT_OK)
      return 1;
    return runInChild([&] {
      if (useGPU() != FP8RT_ERROR_DEVICE_LOST ||
          fp8rt_device_synchronize(0) != FP8RT_ERROR_DEVICE_LOST)
        return 2;
      std::string message = fp8rt_get_last_error();
      return message.find("fork") == std::string::npos ? 3 : 0;
    });
  };
  int status = runInChild(start);
  if (status == 100)
    GTEST_SKIP() << "another test has used a GPU";
  EXPECT_EQ(status, 0);
}
} // namespace
