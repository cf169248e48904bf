//===- StatsTest.cpp - Statistics of quantized tensors --------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fp8/Runtime/Stats.h"

#include "gtest/gtest.h"

#include <cmath>
#include <thread>
#include <vector>

namespace {
class Stats : public testing::Test {
protected:
  void SetUp() override { fp8rt_stats_reset(); }

  fp8rt_stats get(int64_t slot) {
    fp8rt_stats stats;
    fp8rt_stats_get(slot, &stats);
    return stats;
  }
};
} // namespace

TEST_F(Stats, TakesTheMaximumAndSumsTheRest) {
  fp8rt_stats_record(2, 3.0, 10, 1, 2, 4.0, 0.5);
  fp8rt_stats_record(2, 1.0, 10, 2, 3, 5.0, 0.25);
  EXPECT_EQ(fp8rt_stats_get_num_slots(), 3);
  fp8rt_stats stats = get(2);
  EXPECT_EQ(stats.calls, 2);
  EXPECT_EQ(stats.amax, 3.0);
  EXPECT_EQ(stats.count, 20);
  EXPECT_EQ(stats.underflow, 3);
  EXPECT_EQ(stats.saturated, 5);
  EXPECT_EQ(stats.signal, 9.0);
  EXPECT_EQ(stats.noise, 0.75);
  EXPECT_EQ(get(1).calls, 0);
}

TEST_F(Stats, KeepsANaN) {
  fp8rt_stats_record(0, NAN, 1, 0, 0, 0, 0);
  fp8rt_stats_record(0, 7.0, 1, 0, 0, 0, 0);
  EXPECT_TRUE(std::isnan(get(0).amax));
}

TEST_F(Stats, IgnoresImpossibleSlots) {
  fp8rt_stats_record(-1, 1, 1, 1, 1, 1, 1);
  fp8rt_stats_record(INT64_MAX, 1, 1, 1, 1, 1, 1);
  EXPECT_EQ(fp8rt_stats_get_num_slots(), 0);
  EXPECT_EQ(get(-1).calls, 0);
}

TEST_F(Stats, IsSafeFromManyThreads) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([] {
      for (int i = 0; i < 10000; ++i)
        fp8rt_stats_record(i % 3, 1, 1, 0, 0, 0, 0);
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(get(0).count + get(1).count + get(2).count, 40000);
}
