// RUN: fp8-opt %s | fp8-opt | FileCheck %s

// CHECK-LABEL: func.func @tensors
func.func @tensors(%a: tensor<32x128xf8E4M3FN>, %a_inv: tensor<1x1xf32>,
                   %b: tensor<64x128xf8E4M3FN>, %b_inv: tensor<1x1xf32>,
                   %bias: tensor<64xbf16>, %d: tensor<32x64xbf16>) -> tensor<32x64xbf16> {
  // CHECK: fp8.launch_matmul @fp8_kernels::@matmul
  // CHECK-SAME: a(%{{.*}}, %{{.*}} : tensor<32x128xf8E4M3FN>, tensor<1x1xf32>)
  // CHECK-SAME: operands(%{{.*}} : tensor<64xbf16>) outs(%{{.*}} : tensor<32x64xbf16>) -> tensor<32x64xbf16>
  %0 = fp8.launch_matmul @fp8_kernels::@matmul
      a(%a, %a_inv : tensor<32x128xf8E4M3FN>, tensor<1x1xf32>)
      b(%b, %b_inv : tensor<64x128xf8E4M3FN>, tensor<1x1xf32>)
      operands(%bias : tensor<64xbf16>) outs(%d : tensor<32x64xbf16>)
      -> tensor<32x64xbf16>
  return %0 : tensor<32x64xbf16>
}

// CHECK-LABEL: func.func @memrefs
func.func @memrefs(%a: memref<32x128xf8E4M3FN>, %a_inv: memref<1x1xf32>,
                   %b: memref<64x128xf8E4M3FN>, %b_inv: memref<1x1xf32>,
                   %s: f32, %d: memref<32x64xbf16>, %amax: memref<1x1xf32>) {
  // CHECK: captures(%{{.*}} : f32) outs(%{{.*}}, %{{.*}} : memref<32x64xbf16>, memref<1x1xf32>)
  fp8.launch_matmul @fp8_kernels::@matmul
      a(%a, %a_inv : memref<32x128xf8E4M3FN>, memref<1x1xf32>)
      b(%b, %b_inv : memref<64x128xf8E4M3FN>, memref<1x1xf32>)
      captures(%s : f32) outs(%d, %amax : memref<32x64xbf16>, memref<1x1xf32>)
  return
}
