// ONNX-MLIR: a depthwise convolution and the pointwise one, a product, after it.
func.func @main_graph(%x: tensor<1x10x10x16xf32>, %k: tensor<3x3x16xf32>, %w: tensor<1x1x16x32xf32>) -> tensor<1x8x8x32xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x8x8x16xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<1x8x8x16xf32>) -> tensor<1x8x8x16xf32>
  %0 = linalg.depthwise_conv_2d_nhwc_hwc {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>}
      ins(%x, %k : tensor<1x10x10x16xf32>, tensor<3x3x16xf32>) outs(%init : tensor<1x8x8x16xf32>) -> tensor<1x8x8x16xf32>
  %pe = tensor.empty() : tensor<1x8x8x32xf32>
  %pinit = linalg.fill ins(%zero : f32) outs(%pe : tensor<1x8x8x32xf32>) -> tensor<1x8x8x32xf32>
  %1 = linalg.conv_2d_nhwc_hwcf {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>}
      ins(%0, %w : tensor<1x8x8x16xf32>, tensor<1x1x16x32xf32>) outs(%pinit : tensor<1x8x8x32xf32>) -> tensor<1x8x8x32xf32>
  return %1 : tensor<1x8x8x32xf32>
}
