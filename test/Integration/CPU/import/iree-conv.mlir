// RUN: %python %S/Inputs/check.py %s --recipe=none --max-error=1e-5
// RUN: %python %S/Inputs/check.py %s --recipe=current --max-error=0.06

// A small CNN as IREE's input: padding, a convolution (which stays in high
// precision), a mean over the image, a classifier as a generic that is a matmul.

#map = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
#map1 = affine_map<(d0, d1, d2, d3) -> (d0, d3)>
module {
  ml_program.global private @bias(dense<[0.5, -0.5, 0.25, -0.25, 1.0, -1.0, 2.0, -2.0]> : tensor<8xf32>) : tensor<8xf32>
  func.func @main(%image: tensor<2x6x6x4xf32>, %filter: tensor<3x3x4x16xf32>, %classes: tensor<16x8xf32>) -> tensor<2x8xf32> {
    %zero = arith.constant 0.0 : f32
    %pixels = arith.constant 3.600000e+01 : f32
    %padded = tensor.pad %image low[0, 1, 1, 0] high[0, 1, 1, 0] {
    ^bb0(%i: index, %j: index, %k: index, %l: index):
      tensor.yield %zero : f32
    } : tensor<2x6x6x4xf32> to tensor<2x8x8x4xf32>
    %0 = tensor.empty() : tensor<2x6x6x16xf32>
    %1 = linalg.fill ins(%zero : f32) outs(%0 : tensor<2x6x6x16xf32>) -> tensor<2x6x6x16xf32>
    %2 = linalg.conv_2d_nhwc_hwcf {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>}
        ins(%padded, %filter : tensor<2x8x8x4xf32>, tensor<3x3x4x16xf32>) outs(%1 : tensor<2x6x6x16xf32>) -> tensor<2x6x6x16xf32>
    %3 = tensor.empty() : tensor<2x16xf32>
    %4 = linalg.fill ins(%zero : f32) outs(%3 : tensor<2x16xf32>) -> tensor<2x16xf32>
    %5 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "reduction", "reduction", "parallel"]} ins(%2 : tensor<2x6x6x16xf32>) outs(%4 : tensor<2x16xf32>) {
    ^bb0(%in: f32, %out: f32):
      %20 = arith.divf %in, %pixels : f32
      %21 = arith.addf %20, %out : f32
      linalg.yield %21 : f32
    } -> tensor<2x16xf32>
    %b = ml_program.global_load @bias : tensor<8xf32>
    %6 = tensor.empty() : tensor<2x8xf32>
    %7 = linalg.broadcast ins(%b : tensor<8xf32>) outs(%6 : tensor<2x8xf32>) dimensions = [0]
    %8 = linalg.generic {
        indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>],
        iterator_types = ["parallel", "parallel", "reduction"]} ins(%5, %classes : tensor<2x16xf32>, tensor<16x8xf32>) outs(%7 : tensor<2x8xf32>) {
    ^bb0(%in: f32, %in_0: f32, %out: f32):
      %20 = arith.mulf %in, %in_0 : f32
      %21 = arith.addf %out, %20 : f32
      linalg.yield %21 : f32
    } -> tensor<2x8xf32>
    return %8 : tensor<2x8xf32>
  }
}
