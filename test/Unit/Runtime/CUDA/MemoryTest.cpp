//===- MemoryTest.cpp - Memory of CUDA devices ----------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "EmulatedDriver.h"

#include "fp8/Runtime/Memory.h"

#include <cstdint>

namespace {
using Memory = EmulatedDriver;
} // namespace

TEST_F(Memory, IsAllocatedCopiedSetAndFreed) {
  void *ptr = nullptr;
  expectOk(fp8rt_memory_alloc(1, 8, &ptr));
  uint8_t in[8] = {1, 2, 3, 4, 5, 6, 7, 8}, out[8] = {};
  expectOk(fp8rt_memory_copy(1, ptr, in, 8, nullptr));
  expectOk(fp8rt_memory_set(1, static_cast<uint8_t *>(ptr) + 6, 9, 2, nullptr));
  expectOk(fp8rt_memory_copy(1, out, ptr, 8, nullptr));
  EXPECT_EQ(out[0], 1);
  EXPECT_EQ(out[5], 6);
  EXPECT_EQ(out[6], 9);
  EXPECT_EQ(out[7], 9);
  expectOk(fp8rt_memory_free(1, ptr));
}

TEST_F(Memory, OfNoBytesIsNull) {
  void *ptr = this;
  expectOk(fp8rt_memory_alloc(0, 0, &ptr));
  EXPECT_EQ(ptr, nullptr);
  expectOk(fp8rt_memory_free(0, ptr));
  expectOk(fp8rt_memory_copy(0, nullptr, nullptr, 0, nullptr));
  expectOk(fp8rt_memory_set(0, nullptr, 0, 0, nullptr));
  expectOk(fp8rt_workspace_alloc(0, nullptr, 0, FP8RT_WORKSPACE_ZERO, &ptr));
  EXPECT_EQ(ptr, nullptr);
  expectOk(fp8rt_workspace_free(0, nullptr, ptr));
}

namespace {
/// A framework with memory of its own.
struct Framework {
  char memory[64];
  int numUsed = 0;
  fp8rt_status status = FP8RT_OK;

  static fp8rt_status alloc(int32_t device, fp8rt_stream, size_t bytes,
                            void **ptr, void **owner, void *data) {
    auto &self = *static_cast<Framework *>(data);
    if (self.status != FP8RT_OK)
      return fp8rt_set_last_error(self.status, "nothing left");
    // One device's, and what fits.
    if (device != 0 || bytes > sizeof(memory))
      return FP8RT_OK;
    *ptr = self.memory;
    *owner = &self.numUsed;
    ++self.numUsed;
    return FP8RT_OK;
  }
  static void free(void *owner, void *) { --*static_cast<int *>(owner); }

  Framework() {
    fp8rt_workspace_set_allocator(reinterpret_cast<void *>(alloc),
                                  reinterpret_cast<void *>(free), this);
  }
  ~Framework() { fp8rt_workspace_set_allocator(nullptr, nullptr, nullptr); }
};
} // namespace

TEST_F(Memory, MayBeAFrameworks) {
  void *before, *theirs, *large, *other;
  expectOk(fp8rt_workspace_alloc(0, nullptr, 8, 0, &before));
  {
    Framework framework;
    expectOk(
        fp8rt_workspace_alloc(0, nullptr, 8, FP8RT_WORKSPACE_ZERO, &theirs));
    EXPECT_EQ(theirs, framework.memory);
    EXPECT_EQ(framework.memory[7], 0);
    EXPECT_EQ(framework.numUsed, 1);
    // What it leaves to the library is the library's, and so is what was made
    // before.
    expectOk(fp8rt_workspace_alloc(0, nullptr, 65, 0, &large));
    expectOk(fp8rt_workspace_alloc(1, nullptr, 8, 0, &other));
    EXPECT_EQ(framework.numUsed, 1);
    expectOk(fp8rt_workspace_free(0, nullptr, large));
    expectOk(fp8rt_workspace_free(1, nullptr, other));
    expectOk(fp8rt_workspace_free(0, nullptr, before));
    EXPECT_EQ(framework.numUsed, 1);
    expectOk(fp8rt_workspace_free(0, nullptr, theirs));
    EXPECT_EQ(framework.numUsed, 0);
    framework.status = FP8RT_ERROR_OUT_OF_MEMORY;
    expectError(fp8rt_workspace_alloc(0, nullptr, 8, 0, &theirs),
                FP8RT_ERROR_OUT_OF_MEMORY, "nothing left");
  }
  expectOk(fp8rt_workspace_alloc(0, nullptr, 8, 0, &theirs));
  expectOk(fp8rt_workspace_free(0, nullptr, theirs));
}

TEST_F(Memory, MayBeTooLittle) {
  void *ptr = this;
  expectError(fp8rt_memory_alloc(0, size_t{1} << 40, &ptr),
              FP8RT_ERROR_OUT_OF_MEMORY,
              "cannot allocate 1099511627776 bytes on device 0: "
              "CUDA_ERROR_OUT_OF_MEMORY");
  EXPECT_EQ(ptr, this);
}

TEST_F(Memory, KnowsItsDevice) {
  void *ptr;
  int host = 0;
  int32_t device = -2;
  expectOk(fp8rt_memory_alloc(1, 256, &ptr));
  expectOk(fp8rt_memory_get_device(static_cast<char *>(ptr) + 255, &device));
  EXPECT_EQ(device, 1);
  expectOk(fp8rt_memory_get_device(&host, &device));
  EXPECT_EQ(device, -1);
  expectOk(fp8rt_memory_check(1, ptr, "x"));
  expectError(fp8rt_memory_check(0, ptr, "x"), FP8RT_ERROR_WRONG_DEVICE,
              "expected x on device 0, but got one on device 1");
  expectError(fp8rt_memory_check(0, &host, "x"), FP8RT_ERROR_WRONG_DEVICE,
              "expected x on device 0, but got one in host memory");
  expectError(fp8rt_memory_check(0, nullptr, "x"), FP8RT_ERROR_INVALID_ARGUMENT,
              "expected x, but got null");
  expectOk(fp8rt_memory_free(1, ptr));
}

TEST_F(Memory, DoesNotBreakACapture) {
  fp8rt_stream stream;
  expectOk(fp8rt_stream_create(0, &stream));
  capture(stream, true);
  void *ptr;
  expectOk(fp8rt_memory_alloc(0, 64, &ptr));
  expectOk(fp8rt_memory_free(0, ptr));
  expectOk(fp8rt_workspace_alloc(0, stream, 64, 0, &ptr));
  expectOk(fp8rt_workspace_free(0, stream, ptr));
  // The thread's own mode is as it was: this would break it.
  expectError(fp8rt_stream_synchronize(0, stream), FP8RT_ERROR_CUDA,
              "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED");
  capture(stream, false);
  expectOk(fp8rt_stream_destroy(0, stream));
}

TEST_F(Memory, ComesFromAPoolAsWorkspace) {
  void *ptr;
  expectOk(fp8rt_workspace_alloc(0, nullptr, 4, 0, &ptr));
  EXPECT_EQ(*static_cast<uint32_t *>(ptr), 0xffffffff) << "it was written to";
  EXPECT_EQ(getCalls("cuMemAllocFromPoolAsync"), 1);
  EXPECT_EQ(getCalls("cuMemAlloc"), 0);
  expectOk(fp8rt_workspace_free(0, nullptr, ptr));
  EXPECT_EQ(getCalls("cuMemFreeAsync"), 1);
}

TEST_F(Memory, IsZeroAsWorkspaceThatIsAskedToBe) {
  void *ptr;
  expectOk(fp8rt_workspace_alloc(0, nullptr, 4, FP8RT_WORKSPACE_ZERO, &ptr));
  EXPECT_EQ(*static_cast<uint32_t *>(ptr), 0u);
  expectOk(fp8rt_workspace_free(0, nullptr, ptr));
  expectError(fp8rt_workspace_alloc(0, nullptr, 4, 6, &ptr),
              FP8RT_ERROR_INVALID_ARGUMENT,
              "expected flags to be FP8RT_WORKSPACE_ZERO or 0, but got 6");
}

TEST_F(Memory, IsFreedIfWorkspaceCannotBeFilled) {
  fail("cuMemsetD8Async", 803, 1);
  void *ptr = this;
  expectError(fp8rt_workspace_alloc(0, nullptr, 4, FP8RT_WORKSPACE_ZERO, &ptr),
              FP8RT_ERROR_CUDA, "cannot fill workspace with zeros on device 0");
  EXPECT_EQ(ptr, this);
}

TEST_F(Memory, TrimsThePoolBeforeItGivesUp) {
  fail("cuMemAllocFromPoolAsync", kOutOfMemory, 1);
  void *ptr;
  expectOk(fp8rt_workspace_alloc(0, nullptr, 64, 0, &ptr));
  EXPECT_EQ(getCalls("cuMemPoolTrimTo"), 1);
  expectOk(fp8rt_workspace_free(0, nullptr, ptr));
  fail("cuMemAllocFromPoolAsync", kOutOfMemory, 2);
  expectError(fp8rt_workspace_alloc(0, nullptr, 64, 0, &ptr),
              FP8RT_ERROR_OUT_OF_MEMORY,
              "cannot allocate 64 bytes on device 0");
}
