// graph-compiler: operands in i8 with a scale, dequantized in front of an f32 product.
#map = affine_map<(d0, d1) -> (d0, d1)>
func.func @entry(%x: tensor<16x64xi8>, %w: tensor<64x32xi8>, %y: tensor<16x32xf32>) -> tensor<16x32xf32> {
  %sx = arith.constant 0.05 : f32
  %sw = arith.constant 0.1 : f32
  %xe = tensor.empty() : tensor<16x64xf32>
  %we = tensor.empty() : tensor<64x32xf32>
  %xf = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<16x64xi8>) outs(%xe : tensor<16x64xf32>) {
  ^bb0(%v: i8, %o: f32):
    %f = arith.sitofp %v : i8 to f32
    %r = arith.mulf %f, %sx : f32
    linalg.yield %r : f32
  } -> tensor<16x64xf32>
  %wf = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%w : tensor<64x32xi8>) outs(%we : tensor<64x32xf32>) {
  ^bb0(%v: i8, %o: f32):
    %f = arith.sitofp %v : i8 to f32
    %r = arith.mulf %f, %sw : f32
    linalg.yield %r : f32
  } -> tensor<64x32xf32>
  %0 = linalg.matmul ins(%xf, %wf : tensor<16x64xf32>, tensor<64x32xf32>) outs(%y : tensor<16x32xf32>) -> tensor<16x32xf32>
  return %0 : tensor<16x32xf32>
}
