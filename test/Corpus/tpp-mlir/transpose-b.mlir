// tpp-mlir: a matmul of a transposed operand, written by its indexing maps.
#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (n, k)>
#c = affine_map<(m, n, k) -> (m, n)>
func.func @entry(%x: tensor<64x128xf32>, %w: tensor<96x128xf32>, %y: tensor<64x96xf32>) -> tensor<64x96xf32> {
  %0 = linalg.matmul indexing_maps = [#a, #b, #c] ins(%x, %w : tensor<64x128xf32>, tensor<96x128xf32>) outs(%y : tensor<64x96xf32>) -> tensor<64x96xf32>
  return %0 : tensor<64x96xf32>
}
