//===- DeviceStateTest.cpp - Scaling states on a GPU ------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FakeDriver.h"

#include "fp8/Runtime/DeviceState.h"
#include "fp8/Runtime/Memory.h"

#include <cmath>
#include <limits>
#include <vector>

namespace {

constexpr char kManifest[] =
    R"({"version": 1, "amax_history_len": 4, "slots": [
         {"name": "x", "format": "e4m3"},
         {"name": "w", "format": "e4m3", "cache": 12},
         {"name": "dy", "format": "e5m2"}]})";

class DeviceState : public FakeDriver {
protected:
  void SetUp() override {
    FakeDriver::SetUp();
    expectOk(fp8rt_stream_create(1, &stream));
    expectOk(fp8rt_state_create(kManifest, sizeof(kManifest) - 1, &state));
    expectOk(fp8rt_state_get_rows(state, &host));
  }
  void TearDown() override {
    expectOk(fp8rt_state_destroy(state));
    expectOk(fp8rt_stream_destroy(1, stream));
    FakeDriver::TearDown();
  }

  void upload() { expectOk(fp8rt_state_upload(state, 1, stream, &rows)); }
  void download() { expectOk(fp8rt_state_download(state, stream)); }

  template <typename T>
  std::vector<T> read(const T *row) {
    std::vector<T> values(3);
    expectOk(fp8rt_memory_copy(1, values.data(), row, 3 * sizeof(T), stream));
    expectOk(fp8rt_stream_synchronize(1, stream));
    return values;
  }
  template <typename T>
  void write(T *row, const std::vector<T> &values) {
    expectOk(fp8rt_memory_copy(1, row, values.data(), 3 * sizeof(T), stream));
  }

  fp8rt_stream stream = nullptr;
  fp8rt_state state = 0;
  fp8rt_state_rows host, rows;
};

TEST_F(DeviceState, HasItsRowsOnTheDevice) {
  upload();
  EXPECT_EQ(rows.num_slots, 3);
  for (const void *row : {static_cast<const void *>(rows.amax),
                          static_cast<const void *>(rows.scale),
                          static_cast<const void *>(rows.scale_inv),
                          static_cast<const void *>(rows.underflow),
                          static_cast<const void *>(rows.saturated)}) {
    int32_t device = -1;
    expectOk(fp8rt_memory_get_device(row, &device));
    EXPECT_EQ(device, 1);
  }
  EXPECT_EQ(read(rows.amax), (std::vector<float>{0, 0, 0}));
  EXPECT_EQ(read(rows.underflow), (std::vector<int64_t>{0, 0, 0}));
  EXPECT_EQ(read(rows.saturated), (std::vector<int64_t>{0, 0, 0}));
}

TEST_F(DeviceState, HasCachesThere) {
  upload();
  EXPECT_EQ(rows.cache[0], nullptr);
  EXPECT_EQ(rows.cache[2], nullptr);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(rows.cache[1]) % 256, 0u);
  int32_t device = -1;
  expectOk(fp8rt_memory_get_device(rows.cache[1], &device));
  EXPECT_EQ(device, 1);
}

TEST_F(DeviceState, KeepsItsRowsWhereTheyAre) {
  upload();
  fp8rt_state_rows before = rows;
  upload();
  EXPECT_EQ(rows.amax, before.amax);
  EXPECT_EQ(rows.cache, before.cache);
}

TEST_F(DeviceState, TakesScalesAlong) {
  expectOk(fp8rt_state_set_scale(state, "w", 4));
  upload();
  EXPECT_EQ(read(rows.scale), (std::vector<float>{1, 4, 1}));
  EXPECT_EQ(read(rows.scale_inv), (std::vector<float>{1, 0.25, 1}));
}

TEST_F(DeviceState, TakesAlongOnlyWhatChanged) {
  upload();
  int before = getCalls("cuMemcpyAsync");
  upload();
  EXPECT_EQ(getCalls("cuMemcpyAsync"), before);
  expectOk(fp8rt_state_set_scale(state, "x", 2));
  upload();
  EXPECT_GT(getCalls("cuMemcpyAsync"), before);
  EXPECT_EQ(read(rows.scale)[0], 2);
}

TEST_F(DeviceState, TakesScalesAlongAfterAFailure) {
  upload();
  expectOk(fp8rt_state_set_scale(state, "x", 2));
  fail("cuMemcpyAsync", kLaunchOutOfResources, 1);
  EXPECT_NE(fp8rt_state_upload(state, 1, stream, &rows), FP8RT_OK);
  upload();
  EXPECT_EQ(read(rows.scale)[0], 2);
}

TEST_F(DeviceState, BringsAmaxesBackOnce) {
  upload();
  write(rows.amax, {3, 5, 0});
  write(rows.underflow, {1, 0, 2});
  write(rows.saturated, {0, 7, 0});
  host.amax[0] = 4;
  host.underflow[2] = 10;
  download();
  EXPECT_EQ(host.amax[0], 4);
  EXPECT_EQ(host.amax[1], 5);
  EXPECT_EQ(host.amax[2], 0);
  EXPECT_EQ(host.underflow[0], 1);
  EXPECT_EQ(host.underflow[2], 12);
  EXPECT_EQ(host.saturated[1], 7);
  EXPECT_EQ(read(rows.amax), (std::vector<float>{0, 0, 0}));
  EXPECT_EQ(read(rows.underflow), (std::vector<int64_t>{0, 0, 0}));
  EXPECT_EQ(read(rows.saturated), (std::vector<int64_t>{0, 0, 0}));
}

TEST_F(DeviceState, OrdersAmaxesAsTheRuntimeDoes) {
  upload();
  float nan = std::numeric_limits<float>::quiet_NaN();
  write(rows.amax, {nan, std::numeric_limits<float>::infinity(), 1});
  host.amax[1] = 2;
  host.amax[2] = nan;
  download();
  EXPECT_TRUE(std::isnan(host.amax[0]));
  EXPECT_TRUE(std::isinf(host.amax[1]));
  EXPECT_TRUE(std::isnan(host.amax[2]));
}

TEST_F(DeviceState, StepsAsOnTheHost) {
  fp8rt_state other = 0;
  expectOk(fp8rt_state_clone(state, &other));
  fp8rt_state_rows otherRows;
  expectOk(fp8rt_state_get_rows(other, &otherRows));
  for (float amax : {3.0f, 0.5f, 11.0f, 0.25f}) {
    upload();
    write(rows.amax, {amax, 2 * amax, 0});
    download();
    expectOk(fp8rt_state_update(state));
    otherRows.amax[0] = amax;
    otherRows.amax[1] = 2 * amax;
    expectOk(fp8rt_state_update(other));
    for (int slot = 0; slot < 3; ++slot)
      EXPECT_EQ(host.scale[slot], otherRows.scale[slot]);
  }
  expectOk(fp8rt_state_destroy(other));
}

TEST_F(DeviceState, LeavesNothingToAClone) {
  upload();
  fp8rt_state clone = 0;
  expectOk(fp8rt_state_clone(state, &clone));
  expectError(fp8rt_state_download(clone, stream), FP8RT_ERROR_INVALID_ARGUMENT,
              "expected a state with rows on a device, but nothing was "
              "uploaded");
  expectOk(fp8rt_state_destroy(clone));
}

TEST_F(DeviceState, StaysOnOneDevice) {
  upload();
  expectError(fp8rt_state_upload(state, 0, nullptr, &rows),
              FP8RT_ERROR_WRONG_DEVICE,
              "expected device 1, which has the rows of the state, but got 0");
}

TEST_F(DeviceState, SaysWhatIsWrong) {
  expectError(fp8rt_state_upload(state, 1, stream, nullptr),
              FP8RT_ERROR_INVALID_ARGUMENT, "expected rows, but got null");
  expectError(fp8rt_state_upload(0, 1, stream, &rows),
              FP8RT_ERROR_INVALID_HANDLE, "expected a state, but got 0");
  expectError(fp8rt_state_download(0, stream), FP8RT_ERROR_INVALID_HANDLE,
              "expected a state, but got 0");
}

TEST_F(DeviceState, IsWholeAfterAFailure) {
  fail("cuMemAlloc_v2", kOutOfMemory, 1);
  expectError(fp8rt_state_upload(state, 1, stream, &rows),
              FP8RT_ERROR_OUT_OF_MEMORY, "");
  upload();
  write(rows.amax, {3, 5, 0});
  fail("cuStreamSynchronize", kLaunchOutOfResources, 1);
  EXPECT_NE(fp8rt_state_download(state, stream), FP8RT_OK);
  EXPECT_EQ(host.amax[0], 0);
  download();
  EXPECT_EQ(host.amax[0], 3);
}

} // namespace
