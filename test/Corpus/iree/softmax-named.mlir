// IREE: attention's scores through linalg.softmax.
func.func @attention(%q: tensor<4x32x64xf32>, %k: tensor<4x32x64xf32>, %v: tensor<4x32x64xf32>) -> tensor<4x32x64xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x32x32xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<4x32x32xf32>) -> tensor<4x32x32xf32>
  %0 = linalg.batch_matmul indexing_maps = [affine_map<(b, m, n, k) -> (b, m, k)>, affine_map<(b, m, n, k) -> (b, n, k)>, affine_map<(b, m, n, k) -> (b, m, n)>]
      ins(%q, %k : tensor<4x32x64xf32>, tensor<4x32x64xf32>) outs(%init : tensor<4x32x32xf32>) -> tensor<4x32x32xf32>
  %1 = linalg.softmax dimension(2) ins(%0 : tensor<4x32x32xf32>) outs(%e : tensor<4x32x32xf32>) -> tensor<4x32x32xf32>
  %o = tensor.empty() : tensor<4x32x64xf32>
  %oinit = linalg.fill ins(%zero : f32) outs(%o : tensor<4x32x64xf32>) -> tensor<4x32x64xf32>
  %2 = linalg.batch_matmul ins(%1, %v : tensor<4x32x32xf32>, tensor<4x32x64xf32>) outs(%oinit : tensor<4x32x64xf32>) -> tensor<4x32x64xf32>
  return %2 : tensor<4x32x64xf32>
}
