func.func @linear(%x: tensor<32x64xbf16>, %w: tensor<64x16xbf16>, %y: tensor<32x16xf32>) -> tensor<32x16xf32> {
  %0 = linalg.matmul ins(%x, %w : tensor<32x64xbf16>, tensor<64x16xbf16>) outs(%y : tensor<32x16xf32>) -> tensor<32x16xf32>
  return %0 : tensor<32x16xf32>
}
