//===- bulk_zeros.cu - What rows out of bounds cost bulk copies -----------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One thread of each block copies boxes of 128 rows of 128 bytes through a ring
// of six, of which some rows are out of the tensor's bounds; the clocks of a
// box by the number of blocks and of rows in bounds. Needs an sm_90 GPU:
//
//   nvcc -arch=sm_90a -o bulk_zeros benchmarks/bulk_zeros.cu -lcuda
//   ./bulk_zeros
//
//===----------------------------------------------------------------------===//

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cuda.h>
#include <cuda_runtime.h>

constexpr int kRows = 128, kSlots = 6, kBoxes = 100, kRounds = 4;
constexpr int kSlotBytes = kRows * 128, kSharedBytes = kSlots * kSlotBytes;
constexpr int kExtent = 1024, kPitch = 16384;

__device__ uint32_t toShared(void *pointer) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}

__device__ void waitFor(uint32_t barrier, int phase) {
  asm volatile("{\n"
               ".reg .pred done;\n"
               "again:\n"
               "mbarrier.try_wait.parity.shared.b64 done, [%0], %1;\n"
               "@!done bra again;\n"
               "}" ::"r"(barrier),
               "r"(phase)
               : "memory");
}

__global__ void copyBoxes(const __grid_constant__ CUtensorMap map, int row,
                          long long *clocks) {
  extern __shared__ __align__(1024) char slots[];
  __shared__ __align__(8) uint64_t barriers[kSlots];
  if (threadIdx.x != 0)
    return;
  for (uint64_t &barrier : barriers)
    asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(toShared(&barrier)));
  asm volatile("fence.proxy.async.shared::cta;");
  long long start = clock64();
  for (int i = 0; i < kBoxes + kSlots; ++i) {
    int slot = i % kSlots;
    uint32_t barrier = toShared(barriers + slot);
    if (i >= kSlots)
      waitFor(barrier, (i / kSlots - 1) & 1);
    if (i >= kBoxes)
      continue;
    asm volatile(
        "mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(barrier),
        "r"(kSlotBytes));
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::"
                 "complete_tx::bytes [%0], [%1, {%3, %4}], [%2];" ::"r"(
                     toShared(slots + slot * kSlotBytes)),
                 "l"(&map), "r"(barrier), "r"(i * 128), "r"(row)
                 : "memory");
  }
  clocks[blockIdx.x] = clock64() - start;
}

static int fail(const char *what, int code) {
  std::fprintf(stderr, "bulk_zeros: cannot %s: error %d\n", what, code);
  return 1;
}

int main() {
  char *tensor;
  long long *clocks;
  if (cudaError_t error =
          cudaMalloc(&tensor, static_cast<size_t>(kExtent) * kPitch))
    return fail("allocate memory", error);
  if (cudaError_t error = cudaMallocManaged(&clocks, 256 * sizeof(*clocks)))
    return fail("allocate memory", error);
  CUtensorMap map;
  cuuint64_t sizes[] = {kPitch, kExtent}, pitch[] = {kPitch};
  cuuint32_t box[] = {128, kRows}, steps[] = {1, 1};
  if (CUresult error = cuTensorMapEncodeTiled(
          &map, CU_TENSOR_MAP_DATA_TYPE_UINT8, 2, tensor, sizes, pitch, box,
          steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
          CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
          CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE))
    return fail("make a tensor map", error);
  if (cudaError_t error = cudaFuncSetAttribute(
          copyBoxes, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes))
    return fail("reserve shared memory", error);
  for (int blocks : {18, 66, 132})
    for (int rows : {128, 96, 64, 32, 16, 0}) {
      long long best = INT64_MAX;
      for (int round = 0; round < kRounds; ++round) {
        copyBoxes<<<blocks, 32, kSharedBytes>>>(map, kExtent - rows, clocks);
        if (cudaError_t error = cudaDeviceSynchronize())
          return fail("run the kernel", error);
        best = std::min(best, *std::max_element(clocks, clocks + blocks));
      }
      std::printf("%3d blocks, %3d of %d rows in bounds: %4.0f clocks a box\n",
                  blocks, rows, kRows, static_cast<double>(best) / kBoxes);
    }
  return 0;
}
