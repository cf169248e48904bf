// RUN: %python %S/Inputs/check.py %s --recipe=none --max-error=1e-5
// RUN: %python %S/Inputs/check.py %s --recipe=current --max-error=0.06

// torch-mlir's LayerNorm and Linear on f16 activations of rank 3: statistics in
// f32, and the linear layer as one matmul over collapsed rows with B transposed
// by its indexing maps.

#map = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#map1 = affine_map<(d0, d1, d2) -> (d0, d1, 0)>
#map2 = affine_map<(d0, d1, d2) -> (d2)>
module attributes {torch.debug_module_name = "NormLinear"} {
  func.func @forward(%x: tensor<2x4x32xf16>, %gamma: tensor<32xf32>, %beta: tensor<32xf32>, %weight: tensor<48x32xf16>) -> tensor<2x4x48xf32> {
    %zero = arith.constant 0.000000e+00 : f32
    %count = arith.constant 3.200000e+01 : f32
    %eps = arith.constant 9.99999974E-6 : f32
    %0 = tensor.empty() : tensor<2x4x32xf32>
    %xf = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%x : tensor<2x4x32xf16>) outs(%0 : tensor<2x4x32xf32>) {
    ^bb0(%in: f16, %out: f32):
      %20 = arith.extf %in : f16 to f32
      linalg.yield %20 : f32
    } -> tensor<2x4x32xf32>
    %1 = tensor.empty() : tensor<2x4x1xf32>
    %2 = linalg.fill ins(%zero : f32) outs(%1 : tensor<2x4x1xf32>) -> tensor<2x4x1xf32>
    %sum = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "parallel", "reduction"]} ins(%xf : tensor<2x4x32xf32>) outs(%2 : tensor<2x4x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %20 = arith.addf %in, %out : f32
      linalg.yield %20 : f32
    } -> tensor<2x4x1xf32>
    %centered = linalg.generic {indexing_maps = [#map, #map1, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%xf, %sum : tensor<2x4x32xf32>, tensor<2x4x1xf32>) outs(%0 : tensor<2x4x32xf32>) {
    ^bb0(%in: f32, %in_0: f32, %out: f32):
      %20 = arith.divf %in_0, %count : f32
      %21 = arith.subf %in, %20 : f32
      linalg.yield %21 : f32
    } -> tensor<2x4x32xf32>
    %squares = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "parallel", "reduction"]} ins(%centered : tensor<2x4x32xf32>) outs(%2 : tensor<2x4x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %20 = arith.mulf %in, %in : f32
      %21 = arith.addf %20, %out : f32
      linalg.yield %21 : f32
    } -> tensor<2x4x1xf32>
    %3 = tensor.empty() : tensor<2x4x32xf16>
    %norm = linalg.generic {indexing_maps = [#map, #map1, #map2, #map2, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%centered, %squares, %gamma, %beta : tensor<2x4x32xf32>, tensor<2x4x1xf32>, tensor<32xf32>, tensor<32xf32>) outs(%3 : tensor<2x4x32xf16>) {
    ^bb0(%in: f32, %in_0: f32, %in_1: f32, %in_2: f32, %out: f16):
      %20 = arith.divf %in_0, %count : f32
      %21 = arith.addf %20, %eps : f32
      %22 = math.rsqrt %21 : f32
      %23 = arith.mulf %in, %22 : f32
      %24 = arith.mulf %23, %in_1 : f32
      %25 = arith.addf %24, %in_2 : f32
      %26 = arith.truncf %25 : f32 to f16
      linalg.yield %26 : f16
    } -> tensor<2x4x32xf16>
    %rows = tensor.collapse_shape %norm [[0, 1], [2]] : tensor<2x4x32xf16> into tensor<8x32xf16>
    %4 = tensor.empty() : tensor<8x48xf32>
    %5 = linalg.fill ins(%zero : f32) outs(%4 : tensor<8x48xf32>) -> tensor<8x48xf32>
    %6 = linalg.matmul
        indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1)>]
        ins(%rows, %weight : tensor<8x32xf16>, tensor<48x32xf16>) outs(%5 : tensor<8x48xf32>) -> tensor<8x48xf32>
    %7 = tensor.expand_shape %6 [[0, 1], [2]] output_shape [2, 4, 48] : tensor<8x48xf32> into tensor<2x4x48xf32>
    return %7 : tensor<2x4x48xf32>
  }
}
