//===- DeviceTest.cpp - CUDA devices, streams and events ------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "EmulatedDriver.h"

#include "fp8/Runtime/Memory.h"
#include "fp8/Runtime/Stream.h"

#include <thread>
#include <vector>

namespace {
using Device = EmulatedDriver;
} // namespace

TEST_F(Device, TellsWhatThereIs) {
  int32_t version, count;
  expectOk(fp8rt_device_get_driver_version(&version));
  EXPECT_EQ(version, 12080);
  expectOk(fp8rt_device_get_count(&count));
  EXPECT_EQ(count, 2);
  fp8rt_device_info info;
  expectOk(fp8rt_device_get_info(1, &info));
  EXPECT_STREQ(info.name, "Emulated H200");
  EXPECT_EQ(info.compute_capability_major, 9);
  EXPECT_EQ(info.compute_capability_minor, 0);
  EXPECT_EQ(info.num_sms, 132);
  EXPECT_EQ(info.max_threads_per_block, 1024);
  EXPECT_EQ(info.smem_per_block, 49152);
  EXPECT_EQ(info.smem_per_block_optin, 232448);
  EXPECT_EQ(info.smem_per_sm, 233472);
  EXPECT_EQ(info.l2_cache_size, 65536);
  EXPECT_EQ(info.supports_clusters, 1);
  EXPECT_EQ(info.supports_memory_pools, 1);
  EXPECT_EQ(info.total_memory, 1 << 30);
}

TEST_F(Device, RefusesDevicesThatAreNot) {
  fp8rt_device_info info;
  expectError(fp8rt_device_get_info(2, &info), FP8RT_ERROR_INVALID_ARGUMENT,
              "expected device to be one of 2, but got 2");
  expectError(fp8rt_device_synchronize(-1), FP8RT_ERROR_INVALID_ARGUMENT,
              "expected device to be one of 2, but got -1");
}

TEST_F(Device, RefusesNull) {
  expectError(fp8rt_device_get_count(nullptr), FP8RT_ERROR_INVALID_ARGUMENT,
              "expected count, but got null");
  expectError(fp8rt_device_get_info(0, nullptr), FP8RT_ERROR_INVALID_ARGUMENT,
              "expected info, but got null");
  expectError(fp8rt_stream_create(0, nullptr), FP8RT_ERROR_INVALID_ARGUMENT,
              "expected stream, but got null");
  expectError(fp8rt_event_record(0, nullptr, nullptr),
              FP8RT_ERROR_INVALID_ARGUMENT, "expected event, but got null");
}

TEST_F(Device, LeavesTheCallersContext) {
  // This thread has none: the device is 0 before and after.
  int32_t device = -1;
  expectOk(fp8rt_device_get_current(&device));
  EXPECT_EQ(device, 0);
  expectOk(fp8rt_device_synchronize(1));
  expectOk(fp8rt_device_get_current(&device));
  EXPECT_EQ(device, 0);
}

TEST_F(Device, GoesOnWithTheOthersWhenOneIsLost) {
  expectOk(fp8rt_device_synchronize(0));
  lose(0);
  expectError(fp8rt_device_synchronize(0), FP8RT_ERROR_DEVICE_LOST,
              "cannot synchronize device 0 (Emulated H200, sm_90): "
              "CUDA_ERROR_ILLEGAL_ADDRESS, an illegal memory access was "
              "encountered");
  fp8rt_stream stream;
  expectError(fp8rt_stream_create(0, &stream), FP8RT_ERROR_DEVICE_LOST,
              "cannot make a stream on device 0");
  expectOk(fp8rt_stream_create(1, &stream));
  expectOk(fp8rt_device_synchronize(1));
  expectOk(fp8rt_stream_destroy(1, stream));
}

TEST_F(Device, PassesOnWhatTheDriverSays) {
  fail("cuStreamSynchronize", 803, 1);
  expectError(fp8rt_stream_synchronize(1, nullptr), FP8RT_ERROR_CUDA,
              "cannot synchronize a stream on device 1: "
              "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH");
  fail("cuStreamSynchronize", 4711, 1);
  expectError(fp8rt_stream_synchronize(1, nullptr), FP8RT_ERROR_CUDA,
              "cannot synchronize a stream on device 1: error 4711");
}

TEST_F(Device, TakesTheTimeBetweenEvents) {
  fp8rt_stream stream;
  fp8rt_event start, end;
  expectOk(fp8rt_stream_create(0, &stream));
  expectOk(fp8rt_event_create(0, &start));
  expectOk(fp8rt_event_create(0, &end));
  expectOk(fp8rt_event_record(0, start, stream));
  expectOk(fp8rt_stream_wait_event(0, stream, start));
  // A fill takes a millisecond.
  void *memory = nullptr;
  expectOk(fp8rt_memory_alloc(0, 64, &memory));
  expectOk(fp8rt_memory_set(0, memory, 1, 64, stream));
  expectOk(fp8rt_event_record(0, end, stream));
  expectOk(fp8rt_event_synchronize(0, end));
  float milliseconds = 0;
  expectOk(fp8rt_event_get_elapsed_ms(0, start, end, &milliseconds));
  EXPECT_EQ(milliseconds, 1.0f);
  expectOk(fp8rt_memory_free(0, memory));
  expectOk(fp8rt_event_destroy(0, start));
  expectOk(fp8rt_event_destroy(0, end));
  expectOk(fp8rt_stream_synchronize(0, stream));
  expectOk(fp8rt_stream_destroy(0, stream));
}

TEST_F(Device, IsSafeFromManyThreads) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([t] {
      for (int i = 0; i < 100; ++i) {
        fp8rt_device_info info;
        fp8rt_stream stream;
        EXPECT_EQ(fp8rt_device_get_info(t % 2, &info), FP8RT_OK);
        EXPECT_EQ(fp8rt_stream_create(t % 2, &stream), FP8RT_OK);
        EXPECT_EQ(fp8rt_stream_destroy(t % 2, stream), FP8RT_OK);
      }
    });
  for (std::thread &thread : threads)
    thread.join();
}
