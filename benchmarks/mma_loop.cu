// Loops of mma.sync whose operands change, in TFLOP/s: what matmuls by it are
// beside (mma_share.py). nvcc -gencode=arch=compute_89,code=compute_89 -o
// mma_loop benchmarks/mma_loop.cu && ./mma_loop

#include <cstdint>
#include <cstdio>
#include <cuda_runtime.h>

constexpr int kRows = 4; // Fragments of A and of B, each of which is multiplied
                         // with each, as in a matmul.
constexpr int kColumns = 4;
constexpr int kSums = kRows * kColumns;
constexpr int kSteps = 4096;
constexpr int kThreads = 256;

// No two products of a step have the same operands. On Hopper those of 8 bits
// are sums from zero, to which the accumulator is added in f32, so that ptxas
// computes equal ones once. All operands change in each step, so that nothing
// is converted before the loop.
#define MMA_LOOP(NAME, TEXT)                                                   \
  __global__ void NAME(float *out, uint32_t seed) {                            \
    float sums[kSums][4] = {};                                                 \
    uint32_t a[kRows][4], b[kColumns][2];                                      \
    for (int i = 0; i < kRows * 4; ++i)                                        \
      a[i / 4][i % 4] =                                                        \
          (seed + threadIdx.x * 2654435761u * (i + 1)) & 0xBFBFBFBFu;          \
    for (int i = 0; i < kColumns * 2; ++i)                                     \
      b[i / 2][i % 2] = (seed + threadIdx.x * 40503u * (i + 3)) & 0xBFBFBFBFu; \
    for (int step = 0; step < kSteps; ++step) {                                \
      _Pragma("unroll") for (int i = 0; i < kSums; ++i) {                      \
        uint32_t *x = a[i / kColumns], *y = b[i % kColumns];                   \
        asm volatile(TEXT                                                      \
                     " {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"  \
                     : "+f"(sums[i][0]), "+f"(sums[i][1]), "+f"(sums[i][2]),   \
                       "+f"(sums[i][3])                                        \
                     : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]),  \
                       "r"(y[1]));                                             \
      }                                                                        \
      uint32_t flip = (seed + step * 2654435761u) & 0x83838383u;               \
      for (int i = 0; i < kRows * 4; ++i)                                      \
        a[i / 4][i % 4] ^= flip;                                               \
      for (int i = 0; i < kColumns * 2; ++i)                                   \
        b[i / 2][i % 2] ^= flip;                                               \
    }                                                                          \
    float sum = 0;                                                             \
    for (int i = 0; i < kSums; ++i)                                            \
      for (int j = 0; j < 4; ++j)                                              \
        sum += sums[i][j];                                                     \
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum;                          \
  }

// The same with sums in f16, two of which share a register.
#define MMA_LOOP_F16(NAME, TEXT)                                               \
  __global__ void NAME(float *out, uint32_t seed) {                            \
    uint32_t sums[kSums][2] = {};                                              \
    uint32_t a[kRows][4], b[kColumns][2];                                      \
    for (int i = 0; i < kRows * 4; ++i)                                        \
      a[i / 4][i % 4] =                                                        \
          (seed + threadIdx.x * 2654435761u * (i + 1)) & 0x8F8F8F8Fu;          \
    for (int i = 0; i < kColumns * 2; ++i)                                     \
      b[i / 2][i % 2] = (seed + threadIdx.x * 40503u * (i + 3)) & 0x8F8F8F8Fu; \
    for (int step = 0; step < kSteps; ++step) {                                \
      _Pragma("unroll") for (int i = 0; i < kSums; ++i) {                      \
        uint32_t *x = a[i / kColumns], *y = b[i % kColumns];                   \
        asm volatile(TEXT " {%0,%1}, {%2,%3,%4,%5}, {%6,%7}, {%0,%1};"         \
                     : "+r"(sums[i][0]), "+r"(sums[i][1])                      \
                     : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]),  \
                       "r"(y[1]));                                             \
      }                                                                        \
      uint32_t flip = (seed + step * 2654435761u) & 0x83838383u;               \
      for (int i = 0; i < kRows * 4; ++i)                                      \
        a[i / 4][i % 4] ^= flip;                                               \
      for (int i = 0; i < kColumns * 2; ++i)                                   \
        b[i / 2][i % 2] ^= flip;                                               \
    }                                                                          \
    uint32_t sum = 0;                                                          \
    for (int i = 0; i < kSums; ++i)                                            \
      sum += sums[i][0] + sums[i][1];                                          \
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum;                          \
  }

MMA_LOOP(bf16, "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32")
MMA_LOOP(f16, "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32")
MMA_LOOP(e4m3, "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32")
MMA_LOOP(e5m2, "mma.sync.aligned.m16n8k32.row.col.f32.e5m2.e5m2.f32")
MMA_LOOP_F16(f16_f16, "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16")
MMA_LOOP_F16(e4m3_f16, "mma.sync.aligned.m16n8k32.row.col.f16.e4m3.e4m3.f16")

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
  } kinds[] = {{"bf16", bf16, 16},
               {"f16", f16, 16},
               {"e4m3", e4m3, 32},
               {"e5m2", e5m2, 32},
               {"f16 into f16", f16_f16, 16},
               {"e4m3 into f16", e4m3_f16, 32}};
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
        double flops = 2.0 * 16 * 8 * kind.k * kSums * double(kSteps) *
                       (kThreads / 32) * blocks * processors;
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
