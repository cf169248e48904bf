// RUN: fp8-opt %s --fp8-select-accumulation | FileCheck %s
// RUN: not fp8-opt %s --fp8-select-accumulation=chip=sm_100a 2>&1 | FileCheck %s --check-prefix=OTHER

!a = !fp8.scaled<64x512xf8E4M3FN, block = [*, *], scale = f32>

// What a config says that decides bits are the sums; the rest is no CPU's business.
// CHECK-LABEL: func.func @pinned
// CHECK-NOT:     fp8_gpu
// CHECK:         fp8.matmul {{.*}}tensor_core_accumulation = array<i64: 0, 0, 128, 3, 0, 0>
// CHECK-NOT:     fp8_gpu
// OTHER: error: 'fp8.matmul' op expected a #fp8_sm100.gemm, but got #fp8_sm90.gemm
func.func @pinned(%a: !a, %b: !a) -> tensor<64x64xf32> {
  %0 = fp8.matmul %a, %b accumulate = fast {fp8_gpu.config = #fp8_sm90.gemm<tile_m = 64, tile_n = 64, stages = 8, consumers = 1, group = 1, split_k = 3, swap_ab = true, store = direct>}
    : !a, !a -> tensor<64x64xf32>
  return %0 : tensor<64x64xf32>
}
