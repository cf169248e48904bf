// RUN: fp8-opt %s --fp8-launch-kernels --split-input-file --verify-diagnostics

func.func @absent(%a: tensor<64x64xbf16>) -> tensor<64x64xf32> {
  // expected-error @+1 {{expected a kernel with the attribute 'fp8_gpu.launch', but got @fp8_kernels::@k}}
  %0 = fp8.matmul %a, %a accumulate = fast {fp8_gpu.kernel = @fp8_kernels::@k}
    : tensor<64x64xbf16>, tensor<64x64xbf16> -> tensor<64x64xf32>
  return %0 : tensor<64x64xf32>
}

// -----

gpu.module @fp8_kernels {
  llvm.func @k()
}
func.func @without_launch(%a: tensor<64x64xbf16>) -> tensor<64x64xf32> {
  // expected-error @+1 {{expected a kernel with the attribute 'fp8_gpu.launch', but got @fp8_kernels::@k}}
  %0 = fp8.matmul %a, %a accumulate = fast {fp8_gpu.kernel = @fp8_kernels::@k}
    : tensor<64x64xbf16>, tensor<64x64xbf16> -> tensor<64x64xf32>
  return %0 : tensor<64x64xf32>
}

// -----

// Kernels for few rows are built as the other is.
gpu.module @fp8_kernels {
  llvm.func @k()
}
func.func @few_rows_without_kernel(%a: tensor<64x64xbf16>) -> tensor<64x64xf32> {
  // expected-error @+1 {{expected every entry of 'fp8_gpu.few_rows' to have a kernel}}
  %0 = fp8.matmul %a, %a accumulate = fast {
      fp8_gpu.kernel = @fp8_kernels::@k,
      fp8_gpu.few_rows = [#fp8_gpu.few_rows<most = 16, config = #fp8_sm90.gemm<tile_m = 128, tile_n = 128, stages = 5>>]}
    : tensor<64x64xbf16>, tensor<64x64xbf16> -> tensor<64x64xf32>
  return %0 : tensor<64x64xf32>
}

// -----

// Nor do several without one count as one that comes back.
gpu.module @fp8_kernels {
  llvm.func @k()
}
func.func @few_rows_without_kernels(%a: tensor<64x64xbf16>) -> tensor<64x64xf32> {
  // expected-error @+1 {{expected every entry of 'fp8_gpu.few_rows' to have a kernel}}
  %0 = fp8.matmul %a, %a accumulate = fast {
      fp8_gpu.kernel = @fp8_kernels::@k,
      fp8_gpu.few_rows = [#fp8_gpu.few_rows<most = 16, config = #fp8_sm90.gemm<tile_m = 128, tile_n = 128, stages = 5>>,
                          #fp8_gpu.few_rows<most = 32, config = #fp8_sm90.gemm<tile_m = 128, tile_n = 128, stages = 5>>]}
    : tensor<64x64xbf16>, tensor<64x64xbf16> -> tensor<64x64xf32>
  return %0 : tensor<64x64xf32>
}

// -----

func.func @few_rows_of_no_config(%a: tensor<64x64xbf16>) -> tensor<64x64xf32> {
  // expected-error @+1 {{expected 'fp8_gpu.few_rows' to be a list of #fp8_gpu.few_rows with configs, `most` rising, but got}}
  %0 = fp8.matmul %a, %a accumulate = fast {
      fp8_gpu.few_rows = [#fp8_gpu.few_rows<most = 16, config = 3>]}
    : tensor<64x64xbf16>, tensor<64x64xbf16> -> tensor<64x64xf32>
  return %0 : tensor<64x64xf32>
}
