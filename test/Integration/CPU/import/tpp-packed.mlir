// RUN: %python %S/Inputs/check.py %s --recipe=none --max-error=1e-5
// RUN: %python %S/Inputs/check.py %s --recipe=current --max-error=0.06

// tpp-mlir's blocked layout: the matmul of tiles is one generic of six loops,
// two of each of M, N and K.

#map = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d2, d3, d5)>
#map1 = affine_map<(d0, d1, d2, d3, d4, d5) -> (d1, d2, d5, d4)>
#map2 = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d3, d4)>
module {
  func.func @entry(%arg0: tensor<2x4x8x16xf32>, %arg1: tensor<3x4x16x8xf32>, %arg2: tensor<2x3x8x8xf32>) -> tensor<2x3x8x8xf32> {
    %0 = linalg.generic {indexing_maps = [#map, #map1, #map2], iterator_types = ["parallel", "parallel", "reduction", "parallel", "parallel", "reduction"]} ins(%arg0, %arg1 : tensor<2x4x8x16xf32>, tensor<3x4x16x8xf32>) outs(%arg2 : tensor<2x3x8x8xf32>) {
    ^bb0(%in: f32, %in_0: f32, %out: f32):
      %1 = arith.mulf %in, %in_0 : f32
      %2 = arith.addf %out, %1 : f32
      linalg.yield %2 : f32
    } -> tensor<2x3x8x8xf32>
    return %0 : tensor<2x3x8x8xf32>
  }
}
