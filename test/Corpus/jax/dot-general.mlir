// JAX: a dot_general with operands transposed to the form of a batch_matmul.
func.func public @main(%x: tensor<2x16x4x32xf32>, %w: tensor<2x16x4x32xf32>) -> (tensor<2x4x16x16xf32> {jax.result_info = "result"}) {
  %zero = arith.constant 0.0 : f32
  %xe = tensor.empty() : tensor<2x4x16x32xf32>
  %xt = linalg.transpose ins(%x : tensor<2x16x4x32xf32>) outs(%xe : tensor<2x4x16x32xf32>) permutation = [0, 2, 1, 3]
  %we = tensor.empty() : tensor<2x4x32x16xf32>
  %wt = linalg.transpose ins(%w : tensor<2x16x4x32xf32>) outs(%we : tensor<2x4x32x16xf32>) permutation = [0, 2, 3, 1]
  %a = tensor.collapse_shape %xt [[0, 1], [2], [3]] : tensor<2x4x16x32xf32> into tensor<8x16x32xf32>
  %b = tensor.collapse_shape %wt [[0, 1], [2], [3]] : tensor<2x4x32x16xf32> into tensor<8x32x16xf32>
  %e = tensor.empty() : tensor<8x16x16xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<8x16x16xf32>) -> tensor<8x16x16xf32>
  %0 = linalg.batch_matmul ins(%a, %b : tensor<8x16x32xf32>, tensor<8x32x16xf32>) outs(%init : tensor<8x16x16xf32>) -> tensor<8x16x16xf32>
  %1 = tensor.expand_shape %0 [[0, 1], [2], [3]] output_shape [2, 4, 16, 16] : tensor<8x16x16xf32> into tensor<2x4x16x16xf32>
  return %1 : tensor<2x4x16x16xf32>
}
