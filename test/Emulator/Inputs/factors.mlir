// A linear layer whose K takes more stages than there are: y = x @ w + bias.
func.func @linear(%x: tensor<512x1024xbf16> {fp8.name = "x"},
                  %w: tensor<1024x128xbf16> {fp8.name = "w", fp8.weight},
                  %bias: tensor<128xbf16> {fp8.name = "bias"})
    -> (tensor<512x128xbf16> {fp8.name = "y"}) {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<512x128xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<512x128xf32>) -> tensor<512x128xf32>
  %product = linalg.matmul ins(%x, %w : tensor<512x1024xbf16>, tensor<1024x128xbf16>)
                           outs(%zeros : tensor<512x128xf32>) -> tensor<512x128xf32> loc("linear")
  %out = tensor.empty() : tensor<512x128xbf16>
  %y = linalg.generic {
      indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (n)>,
                       affine_map<(m, n) -> (m, n)>],
      iterator_types = ["parallel", "parallel"]}
      ins(%product, %bias : tensor<512x128xf32>, tensor<128xbf16>) outs(%out : tensor<512x128xbf16>) {
  ^bb0(%p: f32, %b: bf16, %o: bf16):
    %b32 = arith.extf %b : bf16 to f32
    %sum = arith.addf %p, %b32 : f32
    %rounded = arith.truncf %sum : f32 to bf16
    linalg.yield %rounded : bf16
  } -> tensor<512x128xbf16>
  return %y : tensor<512x128xbf16>
}
