// RUN: %python %S/Inputs/check.py %s --recipe=none --max-error=1e-5
// RUN: %python %S/Inputs/check.py %s --recipe=current --max-error=0.06

// One layer as tpp-mlir's mlir-gen prints it: the contraction, the bias and the
// ReLU are generics, and the weights are a splat.

#map = affine_map<(d0, d1, d2) -> (d0, d2)>
#map1 = affine_map<(d0, d1, d2) -> (d2, d1)>
#map2 = affine_map<(d0, d1, d2) -> (d0, d1)>
#map3 = affine_map<(d0, d1) -> (d1)>
#map4 = affine_map<(d0, d1) -> (d0, d1)>
module {
  func.func @entry(%arg0: tensor<16x64xf32>, %arg1: tensor<32xf32>, %arg2: tensor<16x32xf32>) -> tensor<16x32xf32> {
    %weights = arith.constant dense<1.250000e-01> : tensor<64x32xf32>
    %0 = linalg.generic {indexing_maps = [#map, #map1, #map2], iterator_types = ["parallel", "parallel", "reduction"]} ins(%arg0, %weights : tensor<16x64xf32>, tensor<64x32xf32>) outs(%arg2 : tensor<16x32xf32>) {
    ^bb0(%in: f32, %in_0: f32, %out: f32):
      %3 = arith.mulf %in, %in_0 : f32
      %4 = arith.addf %out, %3 : f32
      linalg.yield %4 : f32
    } -> tensor<16x32xf32>
    %1 = linalg.generic {indexing_maps = [#map3, #map4], iterator_types = ["parallel", "parallel"]} ins(%arg1 : tensor<32xf32>) outs(%0 : tensor<16x32xf32>) {
    ^bb0(%in: f32, %out: f32):
      %3 = arith.addf %in, %out : f32
      linalg.yield %3 : f32
    } -> tensor<16x32xf32>
    %c0 = arith.constant 0.0 : f32
    %2 = linalg.generic {indexing_maps = [#map4], iterator_types = ["parallel", "parallel"]} outs(%1 : tensor<16x32xf32>) {
    ^bb0(%out: f32):
      %3 = arith.maximumf %out, %c0 : f32
      linalg.yield %3 : f32
    } -> tensor<16x32xf32>
    return %2 : tensor<16x32xf32>
  }
}
