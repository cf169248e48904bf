// tpp-mlir: a matmul of blocked operands, six loops in a generic, as packing leaves it.
#a = affine_map<(bm, bn, bk, m, n, k) -> (bm, bk, m, k)>
#b = affine_map<(bm, bn, bk, m, n, k) -> (bn, bk, k, n)>
#c = affine_map<(bm, bn, bk, m, n, k) -> (bm, bn, m, n)>
func.func @entry(%x: tensor<4x8x32x32xf32>, %w: tensor<8x8x32x32xf32>, %y: tensor<4x8x32x32xf32>) -> tensor<4x8x32x32xf32> {
  %0 = linalg.generic {indexing_maps = [#a, #b, #c],
      iterator_types = ["parallel", "parallel", "reduction", "parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<4x8x32x32xf32>, tensor<8x8x32x32xf32>) outs(%y : tensor<4x8x32x32xf32>) {
  ^bb0(%p: f32, %q: f32, %acc: f32):
    %t = arith.mulf %p, %q : f32
    %s = arith.addf %acc, %t : f32
    linalg.yield %s : f32
  } -> tensor<4x8x32x32xf32>
  return %0 : tensor<4x8x32x32xf32>
}
