func.func @short(%x: tensor<32x8xf32>, %w: tensor<8x16xf32>, %y: tensor<32x16xf32>) -> tensor<32x16xf32> {
  %0 = linalg.matmul ins(%x, %w : tensor<32x8xf32>, tensor<8x16xf32>) outs(%y : tensor<32x16xf32>) -> tensor<32x16xf32>
  return %0 : tensor<32x16xf32>
}

// -----

func.func @unknown() {
  other.op 3
  return
}

// -----

func.func @also_short(%x: tensor<32x4xf32>, %w: tensor<4x16xf32>, %y: tensor<32x16xf32>) -> tensor<32x16xf32> {
  %0 = linalg.matmul ins(%x, %w : tensor<32x4xf32>, tensor<4x16xf32>) outs(%y : tensor<32x16xf32>) -> tensor<32x16xf32>
  return %0 : tensor<32x16xf32>
}
