// RUN: fp8-opt --fp8-set-target=chip=sm_90a --fp8-select-kernels --verify-diagnostics %s | FileCheck %s
// RUN: fp8-opt --fp8-set-target=chip=sm_100a --fp8-select-kernels --verify-diagnostics %s | FileCheck %s
// RUN: fp8-opt --fp8-form-fusions=position-dependent --fp8-set-target=chip=sm_90a --fp8-select-kernels %s 2>&1 | FileCheck %s --check-prefix=FORMED
// RUN: fp8-opt --fp8-form-fusions=position-dependent --fp8-set-target=chip=sm_100a --fp8-select-kernels %s 2>&1 | FileCheck %s --check-prefix=FORMED

!q = !fp8.scaled<64x128xf4E2M1FN, block = [*, *], scale = f32>
!odd = !fp8.scaled<64x31xf4E2M1FN, block = [*, *], scale = f32>

// Kernels are of fusions: what stands alone has none, and says so.

// FORMED:       remark: no kernel: expected a domain of one to three dimensions, but got 4
// FORMED:       remark: no kernel: expected a known number of codes of f4E2M1FN in a row that fill bytes, but got 31
// FORMED-NOT:   remark:
// FORMED-LABEL: func.func @stochastic
// FORMED:       fp8.fusion
// FORMED:       fp8_gpu.config = #fp8_fusion.config<
func.func @stochastic(%x: tensor<64x128xbf16>, %s: tensor<1x1xf32>, %seed: tensor<4xi32>) -> !q {
  // expected-remark @below {{no kernel: expected a fp8.fusion around it}}
  %0 = fp8.quantize %x scale(%s, %s : tensor<1x1xf32>, tensor<1x1xf32>) seed(%seed : tensor<4xi32>) : tensor<64x128xbf16> -> !q
  return %0 : !q
}

// FORMED-LABEL: func.func @rotated
// FORMED:       fp8.fusion
// FORMED:       fp8_gpu.config = #fp8_fusion.config<
func.func @rotated(%x: tensor<64x128xbf16>) -> tensor<64x128xbf16> {
  // expected-remark @below {{no kernel: expected a fp8.fusion around it}}
  %0 = fp8.hadamard %x signs = 1 : tensor<64x128xbf16>
  return %0 : tensor<64x128xbf16>
}

// FORMED-LABEL: func.func @odd
// FORMED:       fp8.fusion
// FORMED-NOT:   fp8_gpu.config
// FORMED:       return
func.func @odd(%x: tensor<64x31xbf16>, %s: tensor<1x1xf32>, %seed: tensor<4xi32>) -> !odd {
  // expected-remark @below {{no kernel: expected a fp8.fusion around it}}
  %0 = fp8.quantize %x scale(%s, %s : tensor<1x1xf32>, tensor<1x1xf32>) seed(%seed : tensor<4xi32>) : tensor<64x31xbf16> -> !odd
  return %0 : !odd
}

// FORMED-LABEL: func.func @many
// FORMED-NOT:   fp8.fusion
// FORMED:       return
func.func @many(%x: tensor<2x2x2x16xbf16>) -> tensor<2x2x2x16xbf16> {
  // expected-remark @below {{no kernel: expected a domain of one to three dimensions, but got 4}}
  %0 = fp8.hadamard %x signs = 1 : tensor<2x2x2x16xbf16>
  return %0 : tensor<2x2x2x16xbf16>
}

// To nearest, in no fusion, it is a loop like any other.

// CHECK-LABEL: func.func @nearest
// CHECK-NOT:   fp8_gpu.config
// CHECK:       return
func.func @nearest(%x: tensor<64x128xbf16>, %s: tensor<1x1xf32>) -> !q {
  %0 = fp8.quantize %x scale(%s, %s : tensor<1x1xf32>, tensor<1x1xf32>) : tensor<64x128xbf16> -> !q
  return %0 : !q
}
