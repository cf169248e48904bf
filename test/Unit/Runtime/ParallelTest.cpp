//===- ParallelTest.cpp - Tests of the parallel loop ----------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fp8/Runtime/Parallel.h"
#include "fp8/Runtime/Program.h"

#include "gtest/gtest.h"

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <thread>
#include <vector>

namespace {
void *getAddress(void (*body)(int64_t, int64_t, void *)) {
  return reinterpret_cast<void *>(body);
}

/// How often each iteration has been run, not atomic: none is run twice.
void count(int64_t begin, int64_t end, void *context) {
  auto &counts = *static_cast<std::vector<int> *>(context);
  ASSERT_LT(begin, end);
  for (int64_t i = begin; i < end; ++i)
    ++counts.at(i);
}

TEST(ParallelTest, RunsEachIterationOnce) {
  for (int64_t size : {1, 2, 3, 7, 16, 17, 1000, 12345}) {
    std::vector<int> counts(size, 0);
    fp8rt_parallel_for(size, getAddress(count), &counts);
    EXPECT_EQ(counts, std::vector<int>(size, 1)) << size;
  }
}

TEST(ParallelTest, CallsNothingForAnEmptyLoop) {
  auto fail = [](int64_t, int64_t, void *) { FAIL(); };
  fp8rt_parallel_for(0, getAddress(fail), nullptr);
  fp8rt_parallel_for(-1, getAddress(fail), nullptr);
}

TEST(ParallelTest, StaysOnTheThreadForOneIteration) {
  auto body = [](int64_t, int64_t, void *context) {
    *static_cast<std::thread::id *>(context) = std::this_thread::get_id();
  };
  std::thread::id id;
  fp8rt_parallel_for(1, getAddress(body), &id);
  EXPECT_EQ(id, std::this_thread::get_id());
}

// A loop in a loop runs on the thread of its iteration.
TEST(ParallelTest, Nests) {
  constexpr int64_t size = 20;
  std::vector<std::vector<int>> counts(size, std::vector<int>(size, 0));
  auto body = [](int64_t begin, int64_t end, void *context) {
    auto &counts = *static_cast<std::vector<std::vector<int>> *>(context);
    for (int64_t i = begin; i < end; ++i)
      fp8rt_parallel_for(counts[i].size(), getAddress(count), &counts[i]);
  };
  fp8rt_parallel_for(size, getAddress(body), &counts);
  for (const std::vector<int> &row : counts)
    EXPECT_EQ(row, std::vector<int>(size, 1));
}

TEST(ParallelTest, IsThreadSafe) {
  std::vector<std::thread> threads;
  std::vector<std::vector<int>> counts(4, std::vector<int>(100, 0));
  threads.reserve(counts.size());
  for (std::vector<int> &own : counts)
    threads.emplace_back([&own] {
      for (int i = 0; i < 50; ++i)
        fp8rt_parallel_for(own.size(), getAddress(count), &own);
    });
  for (std::thread &thread : threads)
    thread.join();
  for (const std::vector<int> &own : counts)
    EXPECT_EQ(own, std::vector<int>(100, 50));
}

// On whichever thread: the call ends, and so do the other threads.
TEST(ParallelTest, EndsTheCallThatGivesUp) {
  fp8rt_program_function function = {};
  function.invoke = [](void **arguments) {
    auto body = [](int64_t begin, int64_t end, void *bad) {
      for (int64_t i = begin; i < end; ++i)
        if (i == *static_cast<int64_t *>(bad))
          fp8rt_program_fail("a bad iteration");
    };
    fp8rt_parallel_for(1000, getAddress(body), arguments[0]);
  };
  for (int64_t bad : {0, 3, 500, 999, 1000}) {
    void *arguments[] = {&bad};
    fp8rt_status status = fp8rt_program_invoke(&function, arguments);
    EXPECT_EQ(status, bad < 1000 ? FP8RT_ERROR_INVALID_ARGUMENT : FP8RT_OK);
    if (status)
      EXPECT_STREQ(fp8rt_get_last_error(), "a bad iteration");
  }
}

// Otherwise the loop would be right, and no faster.
TEST(ParallelTest, UsesTheThreadsOfOneDNN) {
  struct Seen {
    std::atomic<int> arrived{0};
    std::atomic<bool> together{false};
  } seen;
  auto body = [](int64_t, int64_t, void *context) {
    auto &seen = *static_cast<Seen *>(context);
    ++seen.arrived;
    // Until another thread comes, or never will.
    for (int i = 0; i < 1000 && seen.arrived < 2; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    if (seen.arrived >= 2)
      seen.together = true;
  };
  if (std::thread::hardware_concurrency() < 2 || getenv("OMP_NUM_THREADS"))
    GTEST_SKIP() << "one thread";
  fp8rt_parallel_for(2, getAddress(body), &seen);
  EXPECT_TRUE(seen.together);
}
} // namespace
