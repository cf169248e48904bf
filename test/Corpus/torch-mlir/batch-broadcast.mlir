// torch-mlir: a weight that is broadcast along the batch of a batch_matmul.
func.func @forward(%x: tensor<4x8x64xf32>, %w: tensor<64x32xf32>) -> tensor<4x8x32xf32> {
  %zero = arith.constant 0.0 : f32
  %we = tensor.empty() : tensor<4x64x32xf32>
  %wb = linalg.generic {indexing_maps = [affine_map<(b, k, n) -> (k, n)>, affine_map<(b, k, n) -> (b, k, n)>], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%w : tensor<64x32xf32>) outs(%we : tensor<4x64x32xf32>) {
  ^bb0(%v: f32, %o: f32):
    linalg.yield %v : f32
  } -> tensor<4x64x32xf32>
  %e = tensor.empty() : tensor<4x8x32xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<4x8x32xf32>) -> tensor<4x8x32xf32>
  %0 = linalg.batch_matmul ins(%x, %wb : tensor<4x8x64xf32>, tensor<4x64x32xf32>) outs(%init : tensor<4x8x32xf32>) -> tensor<4x8x32xf32>
  return %0 : tensor<4x8x32xf32>
}
