// IREE: a product of i8 into i32.
func.func @integers(%x: tensor<32x64xi8>, %w: tensor<64x32xi8>, %y: tensor<32x32xi32>) -> tensor<32x32xi32> {
  %0 = linalg.matmul ins(%x, %w : tensor<32x64xi8>, tensor<64x32xi8>) outs(%y : tensor<32x32xi32>) -> tensor<32x32xi32>
  return %0 : tensor<32x32xi32>
}
