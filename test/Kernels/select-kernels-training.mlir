// RUN: fp8-opt --fp8-set-target=chip=sm_90a --fp8-select-kernels --verify-diagnostics %s
// RUN: fp8-opt --fp8-set-target=chip=sm_100a --fp8-select-kernels --verify-diagnostics %s

!q = !fp8.scaled<64x128xf4E2M1FN, block = [*, *], scale = f32>

func.func @stochastic(%x: tensor<64x128xbf16>, %s: tensor<1x1xf32>, %seed: tensor<4xi32>) -> !q {
  // expected-remark @below {{no kernel: codes are rounded stochastically}}
  %0 = fp8.quantize %x scale(%s, %s : tensor<1x1xf32>, tensor<1x1xf32>) seed(%seed : tensor<4xi32>) : tensor<64x128xbf16> -> !q
  return %0 : !q
}

func.func @rotated(%x: tensor<64x128xbf16>) -> tensor<64x128xbf16> {
  // expected-remark @below {{no kernel: fp8.hadamard has none}}
  %0 = fp8.hadamard %x signs = 1 : tensor<64x128xbf16>
  return %0 : tensor<64x128xbf16>
}

// To nearest, in no stream, it is a loop like any other.
func.func @nearest(%x: tensor<64x128xbf16>, %s: tensor<1x1xf32>) -> !q {
  %0 = fp8.quantize %x scale(%s, %s : tensor<1x1xf32>, tensor<1x1xf32>) : tensor<64x128xbf16> -> !q
  return %0 : !q
}
