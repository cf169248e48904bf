// Loops of mma.sync whose operands change, in TFLOP/s: what matmuls by it are beside (mma_share.py).
// nvcc -gencode=arch=compute_89,code=compute_89 -o mma_loop benchmarks/mma_loop.cu && ./mma_loop

#include <cstdint>
#include <cstdio>
#include <cuda_runtime.h>

constexpr int kSums = 16;
constexpr int kSteps = 4096;
constexpr int kThreads = 256;

// Sums of as many instructions as are in flight; operands change so that no power is saved.
#define MMA_LOOP(NAME, TEXT)                                                   \
  __global__ void NAME(float *out, uint32_t seed) {                           \
    float sums[kSums][4] = {};                                                 \
    uint32_t a[4], b[2];                                                       \
    for (int i = 0; i < 4; ++i)                                                \
      a[i] = (seed + threadIdx.x * 2654435761u * (i + 1)) & 0xBFBFBFBFu;       \
    for (int i = 0; i < 2; ++i)                                                \
      b[i] = (seed + threadIdx.x * 40503u * (i + 3)) & 0xBFBFBFBFu;            \
    for (int step = 0; step < kSteps; ++step) {                                \
      _Pragma("unroll") for (int i = 0; i < kSums; ++i) {                      \
        asm volatile(TEXT " {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};" \
                     : "+f"(sums[i][0]), "+f"(sums[i][1]), "+f"(sums[i][2]),   \
                       "+f"(sums[i][3])                                        \
                     : "r"(a[i % 4]), "r"(a[(i + 1) % 4]), "r"(a[(i + 2) % 4]), \
                       "r"(a[(i + 3) % 4]), "r"(b[i % 2]), "r"(b[(i + 1) % 2])); \
      }                                                                        \
      a[step % 4] ^= 0x01010101u;                                              \
    }                                                                          \
    float sum = 0;                                                             \
    for (int i = 0; i < kSums; ++i)                                            \
      for (int j = 0; j < 4; ++j)                                              \
        sum += sums[i][j];                                                     \
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum;                          \
  }

MMA_LOOP(bf16, "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32")
MMA_LOOP(f16, "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32")
MMA_LOOP(e4m3, "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32")
MMA_LOOP(e5m2, "mma.sync.aligned.m16n8k32.row.col.f32.e5m2.e5m2.f32")

int main() {
  int processors = 0;
  cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, 0);
  float *out = nullptr;
  cudaMalloc(&out, sizeof(float) * 4 * processors * kThreads);
  cudaEvent_t start, end;
  cudaEventCreate(&start);
  cudaEventCreate(&end);
  struct {
    const char *name;
    void (*kernel)(float *, uint32_t);
    int k;
  } kinds[] = {{"bf16", bf16, 16}, {"f16", f16, 16}, {"e4m3", e4m3, 32}, {"e5m2", e5m2, 32}};
  for (auto &kind : kinds)
    for (int blocks : {1, 2}) {
      float best = 0;
      for (int turn = 0; turn < 5; ++turn) {
        float ms = 0;
        cudaEventRecord(start);
        kind.kernel<<<blocks * processors, kThreads>>>(out, turn);
        cudaEventRecord(end);
        cudaEventSynchronize(end);
        cudaEventElapsedTime(&ms, start, end);
        double flops = 2.0 * 16 * 8 * kind.k * kSums * double(kSteps) * (kThreads / 32) * blocks * processors;
        float found = flops / ms * 1e-9;
        best = turn && found > best ? found : best;
      }
      printf("%s %d %.0f\n", kind.name, blocks, best);
    }
  cudaError_t error = cudaDeviceSynchronize();
  if (error != cudaSuccess)
    printf("error: %s\n", cudaGetErrorString(error));
  return error != cudaSuccess;
}
