// JAX: lax.cond, of which each branch has a product.
func.func public @main(%p: tensor<i1>, %x: tensor<16x64xf32>, %w: tensor<64x64xf32>, %y: tensor<16x64xf32>) -> tensor<16x64xf32> {
  %take = tensor.extract %p[] : tensor<i1>
  %0 = scf.if %take -> (tensor<16x64xf32>) {
    %1 = linalg.matmul ins(%x, %w : tensor<16x64xf32>, tensor<64x64xf32>) outs(%y : tensor<16x64xf32>) -> tensor<16x64xf32>
    scf.yield %1 : tensor<16x64xf32>
  } else {
    %1 = linalg.matmul ins(%y, %w : tensor<16x64xf32>, tensor<64x64xf32>) outs(%x : tensor<16x64xf32>) -> tensor<16x64xf32>
    scf.yield %1 : tensor<16x64xf32>
  }
  return %0 : tensor<16x64xf32>
}
