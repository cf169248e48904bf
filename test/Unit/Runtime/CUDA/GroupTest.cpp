//===- GroupTest.cpp - Ranks that share amaxes ----------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Groups of a host's functions, and of NCCL's, of which FakeNccl.cpp has the
// library: its ranks are threads, each with a device and a name of the group.
//
//===----------------------------------------------------------------------===//

#include "EmulatedDriver.h"

#include "fp8/Runtime/Group.h"
#include "fp8/Runtime/Memory.h"

#include <cmath>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

namespace {
class Groups : public EmulatedDriver {
protected:
  static void SetUpTestSuite() {
    setenv("FP8_NCCL", FP8_FAKE_NCCL, 1);
    EmulatedDriver::SetUpTestSuite();
  }
  void TearDown() override {
    for (const char *name : {"host", "rank 0", "rank 1"})
      fp8rt_group_set(name, nullptr, nullptr);
  }
};

/// Another rank has amaxes of 3.
fp8rt_status reduceToThree(void *data, float *amaxes, int64_t count, int32_t,
                           fp8rt_stream) {
  ++*static_cast<int *>(data);
  for (int64_t i = 0; i < count; ++i)
    amaxes[i] = std::fmax(amaxes[i], 3);
  return FP8RT_OK;
}

fp8rt_status giveUp(void *, float *, int64_t, int32_t, fp8rt_stream) {
  return fp8rt_set_last_error(FP8RT_ERROR_CUDA, "a rank is gone");
}

void set(const char *name, fp8rt_reduce_function function, void *data) {
  ASSERT_EQ(fp8rt_group_set(name, reinterpret_cast<void *>(function), data),
            FP8RT_OK);
}
} // namespace

TEST_F(Groups, OfAFunction) {
  int calls = 0;
  float amaxes[2] = {1, 5};
  set("host", reduceToThree, &calls);
  expectOk(fp8rt_group_all_reduce("host", amaxes, 2, -1, nullptr));
  EXPECT_EQ(amaxes[0], 3);
  EXPECT_EQ(amaxes[1], 5);
  // Nobody is asked for nothing.
  expectOk(fp8rt_group_all_reduce("host", nullptr, 0, -1, nullptr));
  EXPECT_EQ(calls, 1);
}

TEST_F(Groups, ThatFail) {
  float amax = 1;
  EXPECT_EQ(fp8rt_group_all_reduce("host", &amax, 1, -1, nullptr),
            FP8RT_ERROR_NOT_FOUND);
  EXPECT_STREQ(fp8rt_get_last_error(),
               "expected something that reduces over the group 'host', but got "
               "nothing: set it before a call");
  set("host", giveUp, nullptr);
  EXPECT_EQ(fp8rt_group_all_reduce("host", &amax, 1, -1, nullptr),
            FP8RT_ERROR_CUDA);
  EXPECT_STREQ(fp8rt_get_last_error(), "a rank is gone");
  EXPECT_EQ(fp8rt_group_all_reduce("host", nullptr, 1, -1, nullptr),
            FP8RT_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(fp8rt_group_all_reduce("host", &amax, -1, -1, nullptr),
            FP8RT_ERROR_INVALID_ARGUMENT);
  for (const char *name : {static_cast<const char *>(nullptr), ""}) {
    EXPECT_EQ(fp8rt_group_set(name, nullptr, nullptr),
              FP8RT_ERROR_INVALID_ARGUMENT);
    EXPECT_EQ(fp8rt_group_all_reduce(name, &amax, 1, -1, nullptr),
              FP8RT_ERROR_INVALID_ARGUMENT);
  }
}

TEST_F(Groups, OfAContextWhoseErrorsAreIts) {
  int calls = 0;
  set("host", reduceToThree, &calls);
  fp8rt_context *context;
  expectOk(fp8rt_context_create(0, nullptr, &context));
  float amax = 1;
  // Only in a first call.
  fp8rt_context_all_reduce(context, "host", &amax, 1, FP8RT_REDUCE_FIRST_CALL);
  EXPECT_EQ(calls, 0);
  fp8rt_context_all_reduce(context, "host", &amax, 1, 0);
  EXPECT_EQ(amax, 3);
  set("host", giveUp, nullptr);
  fp8rt_context_all_reduce(context, "host", &amax, 1, 0);
  EXPECT_EQ(fp8rt_context_take_status(context), FP8RT_ERROR_CUDA);
  EXPECT_STREQ(fp8rt_get_last_error(), "a rank is gone");
  expectOk(fp8rt_context_destroy(context));
}

TEST_F(Groups, OfNccl) {
  char id[FP8RT_NCCL_ID_SIZE];
  expectOk(fp8rt_nccl_create_id(id));
  std::vector<std::vector<float>> results(2);
  auto run = [&](int32_t rank) {
    std::string name = "rank " + std::to_string(rank);
    expectOk(fp8rt_group_create_nccl(name.c_str(), id, 2, rank, rank));
    std::vector<float> amaxes = rank == 0
                                    ? std::vector<float>{1, 7, NAN, 0}
                                    : std::vector<float>{2, 5, INFINITY, 0};
    void *memory;
    size_t bytes = amaxes.size() * sizeof(float);
    expectOk(fp8rt_memory_alloc(rank, bytes, &memory));
    expectOk(fp8rt_memory_copy(rank, memory, amaxes.data(), bytes, nullptr));
    expectOk(fp8rt_group_all_reduce(name.c_str(), static_cast<float *>(memory),
                                    amaxes.size(), rank, nullptr));
    expectOk(fp8rt_memory_copy(rank, amaxes.data(), memory, bytes, nullptr));
    expectOk(fp8rt_device_synchronize(rank));
    expectOk(fp8rt_memory_free(rank, memory));
    results[rank] = amaxes;
  };
  std::thread other(run, 1);
  run(0);
  other.join();
  for (const std::vector<float> &result : results) {
    EXPECT_EQ(result[0], 2);
    EXPECT_EQ(result[1], 7);
    EXPECT_TRUE(std::isnan(result[2]));
    EXPECT_EQ(result[3], 0);
  }
}

TEST_F(Groups, OfNcclThatFail) {
  char id[FP8RT_NCCL_ID_SIZE];
  expectOk(fp8rt_nccl_create_id(id));
  expectOk(fp8rt_group_create_nccl("rank 0", id, 1, 0, 0));
  float amax = 1;
  EXPECT_EQ(fp8rt_group_all_reduce("rank 0", &amax, 1, -1, nullptr),
            FP8RT_ERROR_WRONG_DEVICE);
  EXPECT_STREQ(fp8rt_get_last_error(), "expected amaxes on device 0 for NCCL, "
                                       "but got some on the host");
  EXPECT_EQ(fp8rt_group_all_reduce("rank 0", &amax, 1, 1, nullptr),
            FP8RT_ERROR_WRONG_DEVICE);
  EXPECT_EQ(fp8rt_group_create_nccl("rank 1", id, 1, 1, 0),
            FP8RT_ERROR_INVALID_ARGUMENT);
  // Else it would wait for a rank that does not come.
  EXPECT_EQ(fp8rt_group_create_nccl("", id, 2, 0, 0),
            FP8RT_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(fp8rt_group_create_nccl("rank 1", nullptr, 1, 0, 0),
            FP8RT_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(fp8rt_group_set_nccl("rank 1", nullptr),
            FP8RT_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(fp8rt_nccl_create_id(nullptr), FP8RT_ERROR_INVALID_ARGUMENT);
}
