// graph-compiler: named broadcast, map and reduce around a product.
func.func @entry(%x: tensor<32x64xf32>, %w: tensor<64x64xf32>, %b: tensor<64xf32>) -> tensor<32xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<32x64xf32>
  %bias = linalg.broadcast ins(%b : tensor<64xf32>) outs(%e : tensor<32x64xf32>) dimensions = [0]
  %0 = linalg.matmul ins(%x, %w : tensor<32x64xf32>, tensor<64x64xf32>) outs(%bias : tensor<32x64xf32>) -> tensor<32x64xf32>
  %1 = linalg.map { math.tanh } ins(%0 : tensor<32x64xf32>) outs(%e : tensor<32x64xf32>)
  %re = tensor.empty() : tensor<32xf32>
  %rinit = linalg.fill ins(%zero : f32) outs(%re : tensor<32xf32>) -> tensor<32xf32>
  %2 = linalg.reduce { arith.addf } ins(%1 : tensor<32x64xf32>) outs(%rinit : tensor<32xf32>) dimensions = [1]
  return %2 : tensor<32xf32>
}
