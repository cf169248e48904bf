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
