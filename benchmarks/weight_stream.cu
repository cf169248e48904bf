//===- weight_stream.cu - How fast kernels can read weights once ----------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What a product of few rows has to reach: kernels that bring a weight from
// memory into rings of shared memory and do nothing with it but give stages
// back, one after the other as a CUDA graph, each with a weight of its own that
// no cache has. A row has the share of a copy's speed, by the bytes of a
// weight, for bytes under way in a multiprocessor and of a stage, for blocks of
// a multiprocessor, for a stage that lies together in memory or is boxes of 64
// rows, for how many threads fill stages, and for how a kernel begins: when the
// one before has ended (`alone`), with its blocks resident by then (`waits`),
// or with its first stages under way (`early`), which is right only where
// nothing that runs writes the weight. Needs an sm_90 GPU:
//
//   nvcc -gencode=arch=compute_90a,code=sm_90a -o weight_stream \
//     benchmarks/weight_stream.cu -lcuda
//   ./weight_stream
//
//===----------------------------------------------------------------------===//

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cuda.h>
#include <cuda_runtime.h>
#include <vector>

constexpr int kThreads = 192, kConsumers = 4, kMaxStages = 64;
constexpr int kMultiprocessors = 132, kRounds = 7;
constexpr int kRows = 64;
constexpr size_t kCold = size_t{256} << 20;

enum Start : int { Alone, Waits, Early };
constexpr const char *kStarts[] = {"alone", "waits", "early"};

static void check(cudaError_t error, const char *what) {
  if (error == cudaSuccess)
    return;
  std::fprintf(stderr, "weight_stream: cannot %s: %s\n", what,
               cudaGetErrorString(error));
  std::exit(1);
}

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

struct Stream {
  const char *weight;
  /// Chunks of all blocks, and bytes of one.
  int chunks, bytes;
  /// Stages of a block's ring.
  int stages;
  /// Bytes of a row of a box, and from one to the next; 0 for stages that lie
  /// together.
  int width, pitch;
  /// Boxes of a stage, and threads that fill stages in turn.
  int boxes, producers;
  Start start;
  uint32_t *sums;
};

__device__ void fill(const Stream &stream, const CUtensorMap &map, char *slots,
                     uint64_t *barriers, int i, int chunk) {
  int slot = i % stream.stages;
  uint32_t full = toShared(barriers + slot);
  if (i >= stream.stages)
    waitFor(toShared(barriers + stream.stages + slot),
            (i / stream.stages - 1) & 1);
  asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(full),
               "r"(stream.bytes));
  if (stream.width) {
    int inRow = stream.pitch / stream.width;
    for (int box = 0; box < stream.boxes; ++box) {
      int number = chunk * stream.boxes + box;
      asm volatile(
          "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::"
          "complete_tx::bytes [%0], [%1, {%3, %4}], [%2];" ::"r"(toShared(
              slots + slot * stream.bytes + box * kRows * stream.width)),
          "l"(&map), "r"(full), "r"(number % inRow * stream.width),
          "r"(number / inRow * kRows)
          : "memory");
    }
    return;
  }
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::"
               "complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                   toShared(slots + slot * stream.bytes)),
               "l"(stream.weight + size_t(chunk) * stream.bytes),
               "r"(stream.bytes), "r"(full)
               : "memory");
}

__global__ void __launch_bounds__(kThreads)
    readWeight(Stream stream, const __grid_constant__ CUtensorMap map) {
  extern __shared__ __align__(1024) char slots[];
  __shared__ __align__(8) uint64_t barriers[2 * kMaxStages];
  int first = int(int64_t(stream.chunks) * blockIdx.x / gridDim.x);
  int count =
      int(int64_t(stream.chunks) * (blockIdx.x + 1) / gridDim.x) - first;
  if (threadIdx.x == 0) {
    for (int i = 0; i < stream.stages; ++i) {
      asm volatile(
          "mbarrier.init.shared.b64 [%0], 1;" ::"r"(toShared(barriers + i)));
      asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(
                       toShared(barriers + stream.stages + i)),
                   "r"(kConsumers));
    }
    asm volatile("fence.proxy.async.shared::cta;");
  }
  __syncthreads();
  int ahead = stream.start == Early ? min(count, stream.stages) : 0;
  if (threadIdx.x == 128)
    for (int i = 0; i < ahead; ++i)
      fill(stream, map, slots, barriers, i, first + i);
  if (stream.start != Alone)
    asm volatile("griddepcontrol.wait;" ::: "memory");
  if (threadIdx.x >= 128) {
    int own = int(threadIdx.x - 128) / 32;
    if (threadIdx.x % 32 || own >= stream.producers)
      return;
    for (int i = ahead + own; i < count; i += stream.producers)
      fill(stream, map, slots, barriers, i, first + i);
    asm volatile("griddepcontrol.launch_dependents;");
    return;
  }
  uint32_t sum = 0;
  for (int i = 0; i < count; ++i) {
    int slot = i % stream.stages;
    waitFor(toShared(barriers + slot), (i / stream.stages) & 1);
    sum += *reinterpret_cast<uint32_t *>(slots + slot * stream.bytes +
                                         4 * threadIdx.x);
    __syncwarp();
    if (threadIdx.x % 32 == 0)
      asm volatile("mbarrier.arrive.shared.b64 _, [%0];" ::"r"(
                       toShared(barriers + stream.stages + slot))
                   : "memory");
  }
  stream.sums[blockIdx.x * 128 + threadIdx.x] = sum;
}

static float replay(cudaGraphExec_t graph, cudaStream_t stream) {
  cudaEvent_t from, to;
  cudaEventCreate(&from);
  cudaEventCreate(&to);
  std::vector<float> times;
  for (int round = 0; round <= kRounds; ++round) {
    cudaEventRecord(from, stream);
    check(cudaGraphLaunch(graph, stream), "launch a graph");
    cudaEventRecord(to, stream);
    check(cudaEventSynchronize(to), "wait for a graph");
    float ms;
    cudaEventElapsedTime(&ms, from, to);
    if (round)
      times.push_back(ms);
  }
  cudaEventDestroy(from);
  cudaEventDestroy(to);
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

static CUtensorMap makeMap(char *weight, size_t bytes, int width,
                           int rowBytes) {
  CUtensorMap map = {};
  cuuint64_t pitch[] = {cuuint64_t(rowBytes)};
  cuuint64_t sizes[] = {pitch[0], bytes / pitch[0]};
  cuuint32_t box[] = {cuuint32_t(width), kRows}, steps[] = {1, 1};
  CUtensorMapSwizzle swizzle = width == 128  ? CU_TENSOR_MAP_SWIZZLE_128B
                               : width == 64 ? CU_TENSOR_MAP_SWIZZLE_64B
                                             : CU_TENSOR_MAP_SWIZZLE_32B;
  if (width && cuTensorMapEncodeTiled(&map, CU_TENSOR_MAP_DATA_TYPE_UINT8, 2,
                                      weight, sizes, pitch, box, steps,
                                      CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle,
                                      CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
                                      CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE))
    check(cudaErrorInvalidValue, "make a tensor map");
  return map;
}

struct Ring {
  int perMultiprocessor, underWay, bytes, width;
  int pitch = 4096, boxes = 1, producers = 1;
};

/// Microseconds of a kernel, in a graph of as many as have cold weights.
static float time(char *memory, size_t weight, const Ring &ring, Start start,
                  uint32_t *sums, cudaStream_t cudaStream) {
  int bytes = ring.width ? ring.width * kRows * ring.boxes : ring.bytes << 10;
  int copies = int(kCold / weight);
  int stages = std::min(kMaxStages,
                        (ring.underWay << 10) / ring.perMultiprocessor / bytes);
  // Two blocks have no room beside those of other kernels.
  int shared = std::max(stages * bytes,
                        ring.perMultiprocessor == 1 ? 120 << 10 : 80 << 10);
  check(cudaFuncSetAttribute(
            readWeight, cudaFuncAttributeMaxDynamicSharedMemorySize, shared),
        "reserve shared memory");
  cudaGraph_t graph;
  cudaGraphExec_t made;
  check(cudaStreamBeginCapture(cudaStream, cudaStreamCaptureModeThreadLocal),
        "begin a capture");
  for (int i = 0; i < copies; ++i) {
    cudaLaunchAttribute attribute;
    attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attribute.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = kMultiprocessors * ring.perMultiprocessor;
    config.blockDim = kThreads;
    config.dynamicSmemBytes = shared;
    config.stream = cudaStream;
    config.attrs = &attribute;
    config.numAttrs = start != Alone;
    char *own = memory + i * weight;
    check(cudaLaunchKernelEx(&config, readWeight,
                             Stream{own, int(weight / bytes), bytes, stages,
                                    ring.width, ring.pitch, ring.boxes,
                                    ring.producers, start, sums},
                             makeMap(own, weight, ring.width, ring.pitch)),
          "launch a kernel");
  }
  check(cudaStreamEndCapture(cudaStream, &graph), "end a capture");
  check(cudaGraphInstantiate(&made, graph, 0), "make a graph");
  float ms = replay(made, cudaStream);
  cudaGraphExecDestroy(made);
  cudaGraphDestroy(graph);
  return 1e3f * ms / copies;
}

static void measure(char *memory, size_t weight, const Ring &ring, Start start,
                    uint32_t *sums, cudaStream_t stream, double rate) {
  float us = time(memory, weight, ring, start, sums, stream);
  std::printf("%4.1f MiB  %d a multiprocessor  %3d KiB under way, ",
              double(weight) / (1 << 20), ring.perMultiprocessor,
              ring.underWay);
  if (ring.width)
    std::printf("rows of %3d bytes, %d from one to the next, %d boxes a stage, "
                "%d producers",
                ring.width, ring.pitch, ring.boxes, ring.producers);
  else
    std::printf("%d KiB together  ", ring.bytes);
  std::printf("  %s  %6.2f us  %.2f of a copy\n", kStarts[start], us,
              double(weight) / us / rate);
}

int main() {
  char *memory;
  uint32_t *sums;
  cudaStream_t stream;
  check(cudaMalloc(&memory, size_t{2} << 30), "allocate memory");
  check(cudaMalloc(&sums, 4 * 128 * 2 * kMultiprocessors), "allocate memory");
  check(cudaMemset(memory, 7, size_t{2} << 30), "fill memory");
  check(cudaStreamCreate(&stream), "make a stream");
  cudaGraph_t graph;
  cudaGraphExec_t made;
  check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal),
        "begin a capture");
  check(cudaMemcpyAsync(memory + (size_t{1} << 30), memory, size_t{1} << 30,
                        cudaMemcpyDeviceToDevice, stream),
        "copy");
  check(cudaStreamEndCapture(stream, &graph), "end a capture");
  check(cudaGraphInstantiate(&made, graph, 0), "make a graph");
  double rate = 2.0 * (size_t{1} << 30) / (1e3 * replay(made, stream));
  std::printf("a copy moves %.2f TB/s, bytes read and written\n", 1e-6 * rate);
  const Ring rings[] = {{1, 32, 4, 0},   {1, 64, 4, 0},    {1, 128, 4, 0},
                        {1, 192, 8, 0},  {2, 128, 4, 0},   {1, 64, 0, 32},
                        {1, 96, 0, 32},  {1, 64, 0, 64},   {1, 128, 0, 64},
                        {1, 192, 0, 64}, {1, 128, 0, 128}, {1, 192, 0, 128}};
  for (int mib : {1, 8, 16, 32, 64})
    for (const Ring &ring : rings)
      for (Start start : {Alone, Waits, Early})
        measure(memory, size_t(mib) << 20, ring, start, sums, stream, rate);
  // What a row of a box costs, and what a thread takes to fill a stage.
  for (int pitch : {2048, 3584, 4096, 7168})
    for (int width : {32, 64, 128})
      for (int producers : {1, 2})
        for (int boxes : {1, 2, 4}) {
          size_t ofStages = size_t(pitch) * kRows * boxes;
          measure(
              memory, (size_t(16) << 20) / ofStages * ofStages,
              {1, width == 32 ? 96 : 160, 0, width, pitch, boxes, producers},
              Waits, sums, stream, rate);
        }
  check(cudaDeviceSynchronize(), "run kernels");
  return 0;
}
