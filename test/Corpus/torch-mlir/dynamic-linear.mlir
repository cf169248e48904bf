// torch-mlir: a dynamic batch and sequence, with assertions of equal extents.
func.func @forward(%x: tensor<?x?x64xf32>, %w: tensor<64x32xf32>) -> tensor<?x?x32xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %b = tensor.dim %x, %c0 : tensor<?x?x64xf32>
  %t = tensor.dim %x, %c1 : tensor<?x?x64xf32>
  %0 = tensor.collapse_shape %x [[0, 1], [2]] : tensor<?x?x64xf32> into tensor<?x64xf32>
  %m = arith.muli %b, %t : index
  %e = tensor.empty(%m) : tensor<?x32xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<?x32xf32>) -> tensor<?x32xf32>
  %1 = linalg.matmul ins(%0, %w : tensor<?x64xf32>, tensor<64x32xf32>) outs(%init : tensor<?x32xf32>) -> tensor<?x32xf32>
  %2 = tensor.expand_shape %1 [[0, 1], [2]] output_shape [%b, %t, 32] : tensor<?x32xf32> into tensor<?x?x32xf32>
  return %2 : tensor<?x?x32xf32>
}
