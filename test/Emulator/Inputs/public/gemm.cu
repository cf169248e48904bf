//===- gemm.cu - A public example's matmul, compared with the host --------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#define main example_main
#include EXAMPLE
#undef main

#include <cstdlib>
#include <vector>

using Number = cutlass::half_t;

int main(int argc, char **argv) {
  int m = std::atoi(argv[1]), n = std::atoi(argv[2]), k = std::atoi(argv[3]);
  Number *a, *b;
  float *c, *d;
  cudaMalloc(reinterpret_cast<void **>(&a), sizeof(Number) * m * k);
  cudaMalloc(reinterpret_cast<void **>(&b), sizeof(Number) * n * k);
  cudaMalloc(reinterpret_cast<void **>(&c), sizeof(float) * m * n);
  cudaMalloc(reinterpret_cast<void **>(&d), sizeof(float) * m * n);
  std::srand(1);
  std::vector<float> ha(m * k), hb(n * k), hc(m * n);
  for (float &x : ha)
    x = std::rand() % 7 - 3;
  for (float &x : hb)
    x = std::rand() % 7 - 3;
  for (float &x : hc)
    x = std::rand() % 7 - 3;
  // The emulator's memory is the host's.
  for (int i = 0; i < m * k; ++i)
    a[i] = Number(ha[i]);
  for (int i = 0; i < n * k; ++i)
    b[i] = Number(hb[i]);
  for (int i = 0; i < m * n; ++i)
    c[i] = hc[i];
  using namespace cute;
  gemm_host_f16xf16_f32_f32_tnt(
      a, make_layout(make_shape(m, k), make_stride(k, Int<1>{})), b,
      make_layout(make_shape(n, k), make_stride(k, Int<1>{})), c,
      make_layout(make_shape(m, n), make_stride(n, Int<1>{})), d,
      make_layout(make_shape(m, n), make_stride(n, Int<1>{})), 1.0f, 2.0f);
  if (cudaError_t error = cudaDeviceSynchronize()) {
    std::printf("error %d\n", error);
    return 1;
  }
  int wrong = 0;
  for (int i = 0; i < m; ++i)
    for (int j = 0; j < n; ++j) {
      float sum = 0;
      for (int x = 0; x < k; ++x)
        sum += ha[i * k + x] * hb[j * k + x];
      wrong += d[i * n + j] != sum + 2 * hc[i * n + j];
    }
  std::printf("%d of %d results are wrong\n", wrong, m * n);
  return wrong != 0;
}
