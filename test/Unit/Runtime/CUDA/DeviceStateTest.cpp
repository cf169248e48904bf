//===- DeviceStateTest.cpp - Scaling states on a GPU ----------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "EmulatedDriver.h"

#include "fp8/Runtime/DeviceState.h"
#include "fp8/Runtime/Memory.h"

#include <vector>

namespace {

constexpr char kManifest[] =
    R"({"version": 1, "amax_history_len": 4, "slots": [
         {"name": "x", "format": "e4m3"},
         {"name": "w", "format": "e4m3", "cache": 12},
         {"name": "dy", "format": "e5m2"}]})";

class DeviceState : public EmulatedDriver {
protected:
  void SetUp() override {
    EmulatedDriver::SetUp();
    expectOk(fp8rt_stream_create(1, &stream));
    expectOk(fp8rt_state_create(kManifest, sizeof(kManifest) - 1, &state));
    expectOk(fp8rt_state_get_rows(state, &host));
  }
  void TearDown() override {
    expectOk(fp8rt_state_destroy(state));
    expectOk(fp8rt_stream_destroy(1, stream));
    EmulatedDriver::TearDown();
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
  EXPECT_EQ(rows.num_words, 5);
  const void *all[] = {rows.amax,       rows.scale,     rows.scale_inv,
                       rows.underflow,  rows.saturated, rows.max_finite,
                       rows.words,      rows.last_amax, rows.recorded,
                       rows.non_finite, rows.steps};
  for (const void *row : all) {
    int32_t device = -1;
    expectOk(fp8rt_memory_get_device(row, &device));
    EXPECT_EQ(device, 1);
  }
  EXPECT_EQ(read(rows.amax), (std::vector<float>{0, 0, 0}));
  EXPECT_EQ(read(rows.scale), (std::vector<float>{1, 1, 1}));
  EXPECT_EQ(read(rows.max_finite), (std::vector<float>{448, 448, 57344}));
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

TEST_F(DeviceState, TakesAllValuesThereAndBack) {
  for (int i = 0; i < 3; ++i) {
    host.amax[i] = 10.0f + i;
    host.underflow[i] = 20 + i;
    host.saturated[i] = 30 + i;
    host.last_amax[i] = 40.0f + i;
    host.recorded[i] = 50 + i;
    host.non_finite[i] = 60 + i;
    host.scale[i] = 70.0f + i;
    host.scale_inv[i] = 80.0f + i;
  }
  for (int i = 0; i < 15; ++i)
    host.words[i] = 100 + i;
  *host.steps = 7;
  upload();
  EXPECT_EQ(read(rows.amax), (std::vector<float>{10, 11, 12}));
  EXPECT_EQ(read(rows.underflow), (std::vector<int64_t>{20, 21, 22}));
  EXPECT_EQ(read(rows.saturated), (std::vector<int64_t>{30, 31, 32}));
  EXPECT_EQ(read(rows.last_amax), (std::vector<float>{40, 41, 42}));
  EXPECT_EQ(read(rows.recorded), (std::vector<int64_t>{50, 51, 52}));
  EXPECT_EQ(read(rows.non_finite), (std::vector<int64_t>{60, 61, 62}));
  EXPECT_EQ(read(rows.scale), (std::vector<float>{70, 71, 72}));
  EXPECT_EQ(read(rows.scale_inv), (std::vector<float>{80, 81, 82}));
  EXPECT_EQ(read(rows.words + 12), (std::vector<int32_t>{112, 113, 114}));

  write(rows.amax, {1, 2, 3});
  write(rows.underflow, {4, 5, 6});
  write(rows.saturated, {7, 8, 9});
  write(rows.last_amax, {11, 12, 13});
  write(rows.recorded, {14, 15, 16});
  write(rows.non_finite, {17, 18, 19});
  write(rows.scale, {21, 22, 23});
  write(rows.scale_inv, {24, 25, 26});
  write(rows.words, {27, 28, 29});
  int64_t steps = 8;
  expectOk(fp8rt_memory_copy(1, rows.steps, &steps, sizeof(steps), stream));
  download();
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(host.amax[i], 1 + i);
    EXPECT_EQ(host.underflow[i], 4 + i);
    EXPECT_EQ(host.saturated[i], 7 + i);
    EXPECT_EQ(host.last_amax[i], 11 + i);
    EXPECT_EQ(host.recorded[i], 14 + i);
    EXPECT_EQ(host.non_finite[i], 17 + i);
    EXPECT_EQ(host.scale[i], 21 + i);
    EXPECT_EQ(host.scale_inv[i], 24 + i);
    EXPECT_EQ(host.words[i], 27 + i);
    EXPECT_EQ(host.words[12 + i], 112 + i);
  }
  EXPECT_EQ(*host.steps, 8);
}

TEST_F(DeviceState, CopiesOnlyWhatTheHostChanged) {
  upload();
  int before = getCalls("cuMemcpyAsync");
  // The device has it.
  upload();
  EXPECT_EQ(getCalls("cuMemcpyAsync"), before);
  download();
  before = getCalls("cuMemcpyAsync");
  // Both have it.
  upload();
  EXPECT_EQ(getCalls("cuMemcpyAsync"), before);
  download();
  before = getCalls("cuMemcpyAsync");
  expectOk(fp8rt_state_set_scale(state, "x", 2));
  upload();
  EXPECT_EQ(getCalls("cuMemcpyAsync"), before + 1);
  EXPECT_EQ(read(rows.scale)[0], 2);
  // Through the rows too.
  download();
  before = getCalls("cuMemcpyAsync");
  host.amax[1] = 5;
  upload();
  EXPECT_EQ(getCalls("cuMemcpyAsync"), before + 1);
  EXPECT_EQ(read(rows.amax)[1], 5);
}

TEST_F(DeviceState, WaitsForNothingButTheDownload) {
  upload();
  int before = getCalls("cuStreamSynchronize");
  upload();
  EXPECT_EQ(getCalls("cuStreamSynchronize"), before);
  download();
  EXPECT_EQ(getCalls("cuStreamSynchronize"), before + 1);
}

TEST_F(DeviceState, UploadsInACaptureIfThereIsNothingToCopy) {
  upload();
  capture(stream, true);
  upload();
  capture(stream, false);
}

TEST_F(DeviceState, TakesValuesAlongAfterAFailure) {
  upload();
  download();
  expectOk(fp8rt_state_set_scale(state, "x", 2));
  fail("cuMemcpyAsync", kLaunchOutOfResources, 1);
  EXPECT_NE(fp8rt_state_upload(state, 1, stream, &rows), FP8RT_OK);
  // The host still has them.
  expectOk(fp8rt_state_set_scale(state, "w", 3));
  upload();
  EXPECT_EQ(read(rows.scale), (std::vector<float>{2, 3, 1}));
}

TEST_F(DeviceState, KeepsTheHostsValuesIfADownloadFails) {
  upload();
  write(rows.scale, {5, 6, 7});
  fail("cuStreamSynchronize", kLaunchOutOfResources, 1);
  EXPECT_NE(fp8rt_state_download(state, stream), FP8RT_OK);
  EXPECT_EQ(host.scale[0], 1);
  download();
  EXPECT_EQ(host.scale[0], 5);
}

TEST_F(DeviceState, SaysThatTheDeviceHasTheValues) {
  upload();
  float number;
  int32_t word;
  fp8rt_state_info info;
  fp8rt_state_statistics statistics;
  fp8rt_state clone;
  for (fp8rt_status status :
       {fp8rt_state_get_scale(state, "x", &number),
        fp8rt_state_set_scale(state, "x", 1),
        fp8rt_state_get_words(state, "x", &word, 1),
        fp8rt_state_set_words(state, "x", &word, 1),
        fp8rt_state_get_history(state, "x", &number, 4),
        fp8rt_state_set_history(state, "x", &number, 4),
        fp8rt_state_get_histories(state, &number, 12),
        fp8rt_state_get_statistics(state, 0, &statistics),
        fp8rt_state_get_info(state, &info), fp8rt_state_get_rows(state, &rows),
        fp8rt_state_update(state), fp8rt_state_freeze(state),
        fp8rt_state_unfreeze(state), fp8rt_state_reset(state),
        fp8rt_state_reset_slot(state, "x"), fp8rt_state_clone(state, &clone),
        fp8rt_state_save(state, "nowhere"),
        fp8rt_state_load(state, "nowhere", 0, nullptr)})
    expectError(status, FP8RT_ERROR_ON_DEVICE,
                "expected the values of the state on the host, but device 1 "
                "has them: call fp8rt_state_download first");
  // Names stay with the host.
  int64_t index;
  fp8rt_state_slot slot;
  expectOk(fp8rt_state_find_slot(state, "w", &index));
  expectOk(fp8rt_state_get_slot(state, index, &slot));
  expectOk(fp8rt_state_rename_slot(state, "w", "v"));
  download();
  expectOk(fp8rt_state_get_scale(state, "v", &number));
}

TEST_F(DeviceState, KeepsWhatTheHostChanged) {
  upload();
  download();
  // A graph may have been replayed.
  write(rows.scale, {5, 6, 7});
  download();
  EXPECT_EQ(host.scale[2], 7);
  expectOk(fp8rt_state_set_scale(state, "x", 2));
  expectError(fp8rt_state_download(state, stream), FP8RT_ERROR_INVALID_ARGUMENT,
              "expected an upload of what the host has changed in the state "
              "since the last download, before another");
  EXPECT_EQ(host.scale[0], 2);
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
  download();
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
  fail("cuMemAlloc", kOutOfMemory, 1);
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
