// tpp-mlir: a batch of matmuls that is reduced, linalg.batch_reduce_matmul.
func.func @entry(%x: tensor<8x32x64xf32>, %w: tensor<8x64x32xf32>, %y: tensor<32x32xf32>) -> tensor<32x32xf32> {
  %0 = linalg.batch_reduce_matmul ins(%x, %w : tensor<8x32x64xf32>, tensor<8x64x32xf32>) outs(%y : tensor<32x32xf32>) -> tensor<32x32xf32>
  return %0 : tensor<32x32xf32>
}
