// IREE: f16 operands, an f32 accumulator, and a truncation after it.
#map = affine_map<(d0, d1) -> (d0, d1)>
func.func @dispatch(%x: tensor<64x320xf16>, %w: tensor<320x640xf16>) -> tensor<64x640xf16> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<64x640xf32>
  %half = tensor.empty() : tensor<64x640xf16>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<64x640xf32>) -> tensor<64x640xf32>
  %0 = linalg.matmul ins(%x, %w : tensor<64x320xf16>, tensor<320x640xf16>) outs(%init : tensor<64x640xf32>) -> tensor<64x640xf32>
  %1 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]}
      ins(%0 : tensor<64x640xf32>) outs(%half : tensor<64x640xf16>) {
  ^bb0(%v: f32, %o: f16):
    %r = arith.truncf %v : f32 to f16
    linalg.yield %r : f16
  } -> tensor<64x640xf16>
  return %1 : tensor<64x640xf16>
}
