// RUN: fp8-opt %s --fp8-set-target=chip=sm_90a --fp8-select-kernels --verify-diagnostics -o /dev/null

func.func @too_many(%a: !fp8.scaled<16x4294967296xf8E4M3FN, block = [*, *], scale = f32>) -> tensor<16x16xf32> {
  // expected-remark @+1 {{no kernel: expected extents below 2^31, but got 4294967296}}
  %0 = fp8.matmul %a, %a : !fp8.scaled<16x4294967296xf8E4M3FN, block = [*, *], scale = f32>, !fp8.scaled<16x4294967296xf8E4M3FN, block = [*, *], scale = f32> -> tensor<16x16xf32>
  return %0 : tensor<16x16xf32>
}
