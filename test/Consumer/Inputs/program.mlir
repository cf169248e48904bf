// CHECK: module attributes {{.*}}consumer.kernels = 1 : i64, consumer.matmuls = 1
// CHECK-LABEL: func.func @main
// CHECK: fp8.quantize
// CHECK: fp8.matmul
// CHECK-NOT: linalg.matmul
func.func @main(%a: tensor<32x64xbf16>, %b: tensor<64x128xbf16>) -> tensor<32x128xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<32x128xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<32x128xf32>) -> tensor<32x128xf32>
  %0 = linalg.matmul ins(%a, %b : tensor<32x64xbf16>, tensor<64x128xbf16>)
                     outs(%init : tensor<32x128xf32>) -> tensor<32x128xf32>
  return %0 : tensor<32x128xf32>
}
