// RUN: fp8-opt %s --fp8-raise-convolutions | FileCheck %s

// An image cut into patches, what is left over dropped; names stay.
// CHECK: #[[IMAGE:.*]] = affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, d4, d2, d5, d3, d6)>
// CHECK-LABEL: func.func @patches
// CHECK: %[[USED:.*]] = tensor.extract_slice %arg0[0, 0, 0, 0] [1, 3, 32, 32] [1, 1, 1, 1]
// CHECK: %[[CUT:.*]] = tensor.expand_shape %[[USED]] {{\[}}[0], [1], [2, 3], [4, 5]] {{.*}} into tensor<1x3x2x16x2x16xf32>
// CHECK: linalg.generic {indexing_maps = [#[[IMAGE]], {{.*}}ins(%[[CUT]], %arg1 : {{.*}} attrs = {fp8.name = "patches"}
func.func @patches(%x: tensor<1x3x35x32xf32>, %w: tensor<8x3x16x16xf32>, %c: tensor<1x8x2x2xf32>) -> tensor<1x8x2x2xf32> {
  %0 = linalg.conv_2d_nchw_fchw {fp8.name = "patches", strides = dense<16> : tensor<2xi64>, dilations = dense<1> : tensor<2xi64>}
      ins(%x, %w : tensor<1x3x35x32xf32>, tensor<8x3x16x16xf32>) outs(%c : tensor<1x8x2x2xf32>) -> tensor<1x8x2x2xf32>
  return %0 : tensor<1x8x2x2xf32>
}

// Windows of one element, by steps.
// CHECK-LABEL: func.func @single
// CHECK: tensor.extract_slice %arg0[0, 0, 0, 0] [%{{.*}}, 4, 4, 3] [1, 2, 2, 1]
// CHECK: linalg.generic
func.func @single(%x: tensor<?x7x7x3xbf16>, %w: tensor<1x1x3x8xbf16>, %c: tensor<?x4x4x8xf32>) -> tensor<?x4x4x8xf32> {
  %0 = linalg.conv_2d_nhwc_hwcf {strides = dense<2> : tensor<2xi64>, dilations = dense<1> : tensor<2xi64>}
      ins(%x, %w : tensor<?x7x7x3xbf16>, tensor<1x1x3x8xbf16>) outs(%c : tensor<?x4x4x8xf32>) -> tensor<?x4x4x8xf32>
  return %0 : tensor<?x4x4x8xf32>
}

// Windows that overlap, have holes or are of one channel stay.
// CHECK-LABEL: func.func @others
// CHECK: linalg.conv_1d
// CHECK: linalg.conv_2d_nchw_fchw
// CHECK: linalg.conv_2d_nchw_fchw
// CHECK: linalg.depthwise_conv_2d_nhwc_hwc
func.func @others(%i: tensor<8xf32>, %f: tensor<2xf32>, %o: tensor<7xf32>,
                  %x: tensor<1x3x8x8xf32>, %w: tensor<8x3x2x2xf32>, %c: tensor<1x8x7x7xf32>, %d: tensor<1x8x3x3xf32>,
                  %n: tensor<1x8x8x3xf32>, %v: tensor<2x2x3xf32>, %e: tensor<1x4x4x3xf32>) {
  %0 = linalg.conv_1d ins(%i, %f : tensor<8xf32>, tensor<2xf32>) outs(%o : tensor<7xf32>) -> tensor<7xf32>
  %1 = linalg.conv_2d_nchw_fchw {strides = dense<1> : tensor<2xi64>, dilations = dense<1> : tensor<2xi64>}
      ins(%x, %w : tensor<1x3x8x8xf32>, tensor<8x3x2x2xf32>) outs(%c : tensor<1x8x7x7xf32>) -> tensor<1x8x7x7xf32>
  %2 = linalg.conv_2d_nchw_fchw {strides = dense<2> : tensor<2xi64>, dilations = dense<2> : tensor<2xi64>}
      ins(%x, %w : tensor<1x3x8x8xf32>, tensor<8x3x2x2xf32>) outs(%d : tensor<1x8x3x3xf32>) -> tensor<1x8x3x3xf32>
  %3 = linalg.depthwise_conv_2d_nhwc_hwc {strides = dense<2> : tensor<2xi64>, dilations = dense<1> : tensor<2xi64>}
      ins(%n, %v : tensor<1x8x8x3xf32>, tensor<2x2x3xf32>) outs(%e : tensor<1x4x4x3xf32>) -> tensor<1x4x4x3xf32>
  return
}
