// IREE: a matmul with K split, partial sums added by linalg.reduce.
func.func @split_k(%x: tensor<32x1024xf32>, %w: tensor<1024x32xf32>) -> tensor<32x32xf32> {
  %zero = arith.constant 0.0 : f32
  %xs = tensor.expand_shape %x [[0], [1, 2]] output_shape [32, 4, 256] : tensor<32x1024xf32> into tensor<32x4x256xf32>
  %ws = tensor.expand_shape %w [[0, 1], [2]] output_shape [4, 256, 32] : tensor<1024x32xf32> into tensor<4x256x32xf32>
  %e = tensor.empty() : tensor<4x32x32xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<4x32x32xf32>) -> tensor<4x32x32xf32>
  %0 = linalg.generic {indexing_maps = [affine_map<(s, m, n, k) -> (m, s, k)>, affine_map<(s, m, n, k) -> (s, k, n)>, affine_map<(s, m, n, k) -> (s, m, n)>],
      iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%xs, %ws : tensor<32x4x256xf32>, tensor<4x256x32xf32>) outs(%init : tensor<4x32x32xf32>) {
  ^bb0(%a: f32, %b: f32, %acc: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %acc, %p : f32
    linalg.yield %s : f32
  } -> tensor<4x32x32xf32>
  %ye = tensor.empty() : tensor<32x32xf32>
  %yinit = linalg.fill ins(%zero : f32) outs(%ye : tensor<32x32xf32>) -> tensor<32x32xf32>
  %1 = linalg.reduce { arith.addf } ins(%0 : tensor<4x32x32xf32>) outs(%yinit : tensor<32x32xf32>) dimensions = [0]
  return %1 : tensor<32x32xf32>
}
