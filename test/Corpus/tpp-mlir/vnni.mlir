// tpp-mlir: bf16 in VNNI layout, where pairs of K lie innermost.
#a = affine_map<(m, n, k, v) -> (m, k, v)>
#b = affine_map<(m, n, k, v) -> (k, n, v)>
#c = affine_map<(m, n, k, v) -> (m, n)>
func.func @entry(%x: tensor<64x128xbf16>, %w: tensor<64x64x2xbf16>, %y: tensor<64x64xbf16>) -> tensor<64x64xbf16> {
  %xv = tensor.expand_shape %x [[0], [1, 2]] output_shape [64, 64, 2] : tensor<64x128xbf16> into tensor<64x64x2xbf16>
  %0 = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction", "reduction"]}
      ins(%xv, %w : tensor<64x64x2xbf16>, tensor<64x64x2xbf16>) outs(%y : tensor<64x64xbf16>) {
  ^bb0(%p: bf16, %q: bf16, %acc: bf16):
    %t = arith.mulf %p, %q : bf16
    %s = arith.addf %acc, %t : bf16
    linalg.yield %s : bf16
  } -> tensor<64x64xbf16>
  return %0 : tensor<64x64xbf16>
}
