// IREE: weights of 4 bits in groups, dequantized by a generic in front of the product.
func.func @dequantize(%x: tensor<16x4x32xf32>, %w: tensor<64x4x32xi4>, %scale: tensor<64x4xf32>, %zp: tensor<64x4xf32>) -> tensor<16x64xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64x4x32xf32>
  %0 = linalg.generic {indexing_maps = [affine_map<(n, g, k) -> (n, g, k)>, affine_map<(n, g, k) -> (n, g)>, affine_map<(n, g, k) -> (n, g)>, affine_map<(n, g, k) -> (n, g, k)>],
      iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%w, %scale, %zp : tensor<64x4x32xi4>, tensor<64x4xf32>, tensor<64x4xf32>) outs(%e : tensor<64x4x32xf32>) {
  ^bb0(%q: i4, %s: f32, %z: f32, %o: f32):
    %i = arith.extui %q : i4 to i32
    %f = arith.uitofp %i : i32 to f32
    %d = arith.subf %f, %z : f32
    %r = arith.mulf %d, %s : f32
    linalg.yield %r : f32
  } -> tensor<64x4x32xf32>
  %y = tensor.empty() : tensor<16x64xf32>
  %init = linalg.fill ins(%zero : f32) outs(%y : tensor<16x64xf32>) -> tensor<16x64xf32>
  %1 = linalg.generic {indexing_maps = [affine_map<(m, n, g, k) -> (m, g, k)>, affine_map<(m, n, g, k) -> (n, g, k)>, affine_map<(m, n, g, k) -> (m, n)>],
      iterator_types = ["parallel", "parallel", "reduction", "reduction"]}
      ins(%x, %0 : tensor<16x4x32xf32>, tensor<64x4x32xf32>) outs(%init : tensor<16x64xf32>) {
  ^bb0(%a: f32, %b: f32, %acc: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %p, %acc : f32
    linalg.yield %s : f32
  } -> tensor<16x64xf32>
  return %1 : tensor<16x64xf32>
}
