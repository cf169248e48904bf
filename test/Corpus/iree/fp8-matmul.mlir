// IREE: operands that are FP8 already, extended in the body of the product.
#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (n, k)>
#c = affine_map<(m, n, k) -> (m, n)>
func.func @fp8(%x: tensor<32x64xf8E4M3FN>, %w: tensor<32x64xf8E4M3FN>, %y: tensor<32x32xf32>) -> tensor<32x32xf32> {
  %0 = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<32x64xf8E4M3FN>, tensor<32x64xf8E4M3FN>) outs(%y : tensor<32x32xf32>) {
  ^bb0(%p: f8E4M3FN, %q: f8E4M3FN, %acc: f32):
    %u = arith.extf %p : f8E4M3FN to f32
    %v = arith.extf %q : f8E4M3FN to f32
    %t = arith.mulf %u, %v : f32
    %s = arith.addf %acc, %t : f32
    linalg.yield %s : f32
  } -> tensor<32x32xf32>
  return %0 : tensor<32x32xf32>
}
