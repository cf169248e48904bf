//===- GpuWrappersTest.cpp - The names that upstream's GPU code calls -----===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Async/TensorMap.h"
#include "EmulatedDriver.h"

#include "fp8/Runtime/GpuWrappers.h"
#include "fp8/Runtime/Memory.h"

#include <thread>

namespace {
class GpuWrappers : public EmulatedDriver {
protected:
  void SetUp() override {
    EmulatedDriver::SetUp();
    fp8rt_gpu_take_error();
    mgpuSetDefaultDevice(0);
  }
  void TearDown() override {
    expectOk(fp8rt_gpu_take_error());
    EmulatedDriver::TearDown();
  }

  static void launch(void *function, void *stream, int32_t smem = 0) {
    mgpuLaunchKernel(function, 1, 2, 3, 32, 1, 1, smem, stream, nullptr,
                     nullptr, 0);
  }

  char ptx[80] =
      ".version 8.0\n.target sm_90\n.visible .entry kernel()\n{ ret; }\n";
};
} // namespace

TEST_F(GpuWrappers, RunAKernel) {
  mgpuSetDefaultDevice(1);
  void *module = mgpuModuleLoadJIT(ptx, 3);
  void *function = mgpuModuleGetFunction(module, "kernel");
  void *stream = mgpuStreamCreate();
  ASSERT_TRUE(function && stream);
  launch(function, stream, 100 * 1024);
  fp8emu_launch last = getLastLaunch();
  EXPECT_EQ(last.grid[2], 3u);
  EXPECT_EQ(last.block[0], 32u);
  EXPECT_EQ(last.cluster[0], 0u);
  EXPECT_EQ(last.dynamic_smem, 100u * 1024);
  EXPECT_EQ(last.device, 1);
  EXPECT_EQ(last.stream, stream);
  mgpuLaunchClusterKernel(function, 2, 1, 1, 4, 1, 1, 32, 1, 1, 0, stream,
                          nullptr, nullptr, 0);
  EXPECT_EQ(getLastLaunch().cluster[0], 2u);
  EXPECT_EQ(getLastLaunch().grid[0], 4u);
  mgpuStreamSynchronize(stream);
  mgpuStreamDestroy(stream);
  mgpuModuleUnload(module);
}

TEST_F(GpuWrappers, AllocateInTheOrderOfAStream) {
  void *stream = mgpuStreamCreate();
  void *ptr = mgpuMemAlloc(64, stream, false);
  EXPECT_EQ(getCalls("cuMemAllocFromPoolAsync"), 1);
  mgpuMemFree(ptr, stream);
  EXPECT_EQ(getCalls("cuMemFreeAsync"), 1);
  EXPECT_EQ(getCalls("cuMemAlloc") + getCalls("cuMemFree"), 0);
  mgpuStreamDestroy(stream);
}

TEST_F(GpuWrappers, AllocateAtOnceWithoutAStream) {
  void *stream = mgpuStreamCreate();
  void *ptr = mgpuMemAlloc(64, nullptr, false);
  void *shared = mgpuMemAlloc(64, stream, true);
  EXPECT_EQ(getCalls("cuMemAlloc"), 1);
  EXPECT_EQ(getCalls("cuMemAllocManaged"), 1);
  expectOk(fp8rt_memory_check(1, shared, "shared"));
  // Freed in a stream or not, as the program likes.
  mgpuMemFree(ptr, stream);
  mgpuMemFree(shared, nullptr);
  EXPECT_EQ(getCalls("cuMemFree"), 2);
  EXPECT_EQ(mgpuMemAlloc(0, nullptr, false), nullptr);
  mgpuMemFree(nullptr, nullptr);
  mgpuStreamDestroy(stream);
}

TEST_F(GpuWrappers, CopyAndFill) {
  uint32_t out[4];
  void *ptr = mgpuMemAlloc(16, nullptr, false);
  mgpuMemset32(ptr, 7, 2, nullptr);
  mgpuMemset16(static_cast<char *>(ptr) + 8, 3, 4, nullptr);
  mgpuMemcpy(out, ptr, 16, nullptr);
  EXPECT_EQ(out[1], 7u);
  EXPECT_EQ(out[3], 0x00030003u);
  mgpuMemFree(ptr, nullptr);
}

TEST_F(GpuWrappers, OrderStreamsByEvents) {
  void *stream = mgpuStreamCreate();
  void *event = mgpuEventCreate();
  mgpuEventRecord(event, stream);
  mgpuStreamWaitEvent(nullptr, event);
  mgpuEventSynchronize(event);
  EXPECT_EQ(getCalls("cuEventRecord"), 1);
  EXPECT_EQ(getCalls("cuStreamWaitEvent"), 1);
  EXPECT_EQ(getCalls("cuEventSynchronize"), 1);
  mgpuEventDestroy(event);
  mgpuStreamDestroy(stream);
}

TEST_F(GpuWrappers, RegisterDenseHostMemory) {
  struct {
    void *allocated;
    char *data;
    int64_t offset, sizes[2], strides[2];
  } memref = {nullptr, ptx, 2, {4, 3}, {3, 1}};
  mgpuMemHostRegisterMemRef(2, &memref, 4);
  EXPECT_EQ(getCalls("cuMemHostRegister"), 1);
  mgpuMemHostUnregisterMemRef(2, &memref, 4);
  EXPECT_EQ(getCalls("cuMemHostUnregister"), 1);
  memref.strides[0] = 5;
  mgpuMemHostRegisterMemRef(2, &memref, 4);
  EXPECT_EQ(getCalls("cuMemHostRegister"), 1);
  expectError(fp8rt_gpu_take_error(), FP8RT_ERROR_INVALID_ARGUMENT,
              "mgpuMemHostRegisterMemRef: expected a dense memref");
}

TEST_F(GpuWrappers, MakeATensorMapOnTheDevice) {
  struct {
    void *allocated;
    char *data;
    int64_t offset, sizes[3], strides[3];
  } memref = {
      nullptr, reinterpret_cast<char *>(4096), 8, {2, 64, 128}, {8192, 128, 1}};
  int64_t box[3] = {1, 32, 16};
  auto *map = static_cast<fp8emu::TensorMap *>(mgpuTensorMapEncodeTiledMemref(
      3, &memref, /*type=*/7, 0, /*swizzle=*/2, /*l2_promotion=*/1, 0, box));
  ASSERT_TRUE(map);
  EXPECT_EQ(map->address, 4096u + 8 * 4);
  EXPECT_EQ(map->type, 7);
  EXPECT_EQ(map->rank, 3);
  EXPECT_EQ(map->swizzle, 2);
  EXPECT_EQ(map->promotion, 1);
  EXPECT_EQ(map->lastIndex[0], 127u);
  EXPECT_EQ(map->lastIndex[2], 1u);
  EXPECT_EQ(map->strides[1], 128u * 4);
  EXPECT_EQ(map->strides[2], 8192u * 4);
  EXPECT_EQ(map->box[0], 16);
  EXPECT_EQ(map->box[1], 32);
  mgpuMemFree(map, nullptr);
}

//===----------------------------------------------------------------------===//
// Errors
//===----------------------------------------------------------------------===//

TEST_F(GpuWrappers, DoNothingMoreAfterAnError) {
  void *module = mgpuModuleLoadJIT(ptx, 3);
  void *function = mgpuModuleGetFunction(module, "kernel");
  fail("cuMemAlloc", kOutOfMemory, 1);
  EXPECT_EQ(mgpuMemAlloc(64, nullptr, false), nullptr);
  launch(function, nullptr);
  mgpuMemset32(nullptr, 1, 1, nullptr);
  mgpuMemset16(nullptr, 1, 1, nullptr);
  mgpuMemcpy(nullptr, ptx, 1, nullptr);
  EXPECT_EQ(getCalls("cuLaunchKernelEx"), 0);
  EXPECT_EQ(getCalls("cuMemsetD32Async"), 0);
  EXPECT_EQ(getCalls("cuMemsetD16Async"), 0);
  EXPECT_EQ(getCalls("cuMemcpyAsync"), 0);
  expectError(fp8rt_gpu_take_error(), FP8RT_ERROR_OUT_OF_MEMORY,
              "mgpuMemAlloc: cannot allocate 64 bytes on device 0");
  launch(function, nullptr);
  EXPECT_EQ(getCalls("cuLaunchKernelEx"), 1);
  mgpuModuleUnload(module);
}

TEST_F(GpuWrappers, KeepTheFirstError) {
  void *function = mgpuModuleGetFunction(nullptr, "kernel");
  EXPECT_EQ(function, nullptr);
  mgpuModuleLoadJIT(nullptr, 3);
  mgpuEventRecord(nullptr, nullptr);
  expectError(fp8rt_gpu_take_error(), FP8RT_ERROR_INVALID_ARGUMENT,
              "mgpuModuleGetFunction: expected a module that was loaded, but "
              "got null");
}

TEST_F(GpuWrappers, RefuseImpossibleLaunches) {
  void *module = mgpuModuleLoadJIT(ptx, 3);
  void *function = mgpuModuleGetFunction(module, "kernel");
  launch(nullptr, nullptr);
  expectError(fp8rt_gpu_take_error(), FP8RT_ERROR_INVALID_ARGUMENT,
              "expected a kernel of a module that was loaded, but got null");
  mgpuLaunchKernel(function, int64_t{1} << 32, 1, 1, 1, 1, 1, 0, nullptr,
                   nullptr, nullptr, 0);
  expectError(fp8rt_gpu_take_error(), FP8RT_ERROR_INVALID_ARGUMENT,
              "from 0 to 2^31 - 1");
  launch(function, nullptr, 300 * 1024);
  expectError(fp8rt_gpu_take_error(), FP8RT_ERROR_INVALID_ARGUMENT,
              "cannot give a kernel 307200 bytes of shared memory on device 0");
  EXPECT_EQ(getCalls("cuLaunchKernelEx"), 0);
  mgpuModuleUnload(module);
}

TEST_F(GpuWrappers, SayOnceOnStderrWhatFails) {
  testing::internal::CaptureStderr();
  for (int i = 0; i < 3; ++i) {
    fail("cuStreamCreate", 803, 1);
    EXPECT_EQ(mgpuStreamCreate(), nullptr);
    expectError(fp8rt_gpu_take_error(), FP8RT_ERROR_CUDA, "mgpuStreamCreate: ");
  }
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "fp8rt: mgpuStreamCreate: cannot make a stream: "
            "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH, system has unsupported "
            "display driver / cuda driver combination\n");
}

TEST_F(GpuWrappers, KeepTheErrorsOfThreadsApart) {
  std::thread([] {
    mgpuModuleGetFunction(nullptr, "kernel");
    EXPECT_EQ(fp8rt_gpu_take_error(), FP8RT_ERROR_INVALID_ARGUMENT);
  }).join();
  expectOk(fp8rt_gpu_take_error());
}

TEST_F(GpuWrappers, SurviveALostDevice) {
  void *ptr = mgpuMemAlloc(64, nullptr, false);
  lose(0);
  mgpuStreamSynchronize(nullptr);
  expectError(fp8rt_gpu_take_error(), FP8RT_ERROR_DEVICE_LOST,
              "mgpuStreamSynchronize: cannot synchronize a stream: "
              "CUDA_ERROR_ILLEGAL_ADDRESS");
  mgpuMemFree(ptr, nullptr);
  expectError(fp8rt_gpu_take_error(), FP8RT_ERROR_DEVICE_LOST, "mgpuMemFree: ");
  mgpuSetDefaultDevice(1);
  void *stream = mgpuStreamCreate();
  mgpuStreamDestroy(stream);
  expectOk(fp8rt_gpu_take_error());
  // The emulator brings the device back, a real one would not.
  reset();
  mgpuMemFree(ptr, nullptr);
}
