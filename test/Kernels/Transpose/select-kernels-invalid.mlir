// RUN: fp8-opt --fp8-set-target=chip=sm_90a --fp8-select-kernels --split-input-file --verify-diagnostics %s

func.func @config_of_another_kind(%x: tensor<8x8xf32>, %y: tensor<8x8xf32>) -> tensor<8x8xf32> {
  // expected-error @below {{'linalg.transpose' op expected a #fp8_transpose.config, but got #fp8_sm90.gemm<tile_m = 128, tile_n = 128, stages = 4>}}
  %0 = linalg.transpose ins(%x : tensor<8x8xf32>) outs(%y : tensor<8x8xf32>) permutation = [1, 0]
    {fp8_gpu.config = #fp8_sm90.gemm<tile_m = 128, tile_n = 128, stages = 4>}
  return %0 : tensor<8x8xf32>
}

// -----

func.func @config_without_a_kernel(%x: tensor<7x8xf16>, %y: tensor<8x7xf16>) -> tensor<8x7xf16> {
  // expected-error @below {{'linalg.transpose' op expected the number of rows to be a multiple of 2, so that they start at words, but got 7}}
  %0 = linalg.transpose ins(%x : tensor<7x8xf16>) outs(%y : tensor<8x7xf16>) permutation = [1, 0]
    {fp8_gpu.config = #fp8_transpose.config<warps = 8>}
  return %0 : tensor<8x7xf16>
}
