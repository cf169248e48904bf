// graph-compiler: weights that are constant arguments, and casts between bf16 and f32 around a relu.
#map = affine_map<(d0, d1) -> (d0, d1)>
func.func @entry(%x: tensor<32x64xbf16>, %w: tensor<64x64xbf16>) -> tensor<32x64xbf16> attributes {onednn_graph.const_args = [1 : i32]} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<32x64xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<32x64xf32>) -> tensor<32x64xf32>
  %0 = linalg.matmul ins(%x, %w : tensor<32x64xbf16>, tensor<64x64xbf16>) outs(%init : tensor<32x64xf32>) -> tensor<32x64xf32>
  %oe = tensor.empty() : tensor<32x64xbf16>
  %1 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%0 : tensor<32x64xf32>) outs(%oe : tensor<32x64xbf16>) {
  ^bb0(%v: f32, %o: bf16):
    %r = arith.maximumf %v, %zero : f32
    %b = arith.truncf %r : f32 to bf16
    linalg.yield %b : bf16
  } -> tensor<32x64xbf16>
  return %1 : tensor<32x64xbf16>
}
