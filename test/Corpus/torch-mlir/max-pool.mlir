// torch-mlir: convolution in NCHW, max pooling, flattening and a classifier.
func.func @forward(%x: tensor<1x3x10x10xf32>, %k: tensor<8x3x3x3xf32>, %w: tensor<128x10xf32>) -> tensor<1x10xf32> {
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %e = tensor.empty() : tensor<1x8x8x8xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<1x8x8x8xf32>) -> tensor<1x8x8x8xf32>
  %0 = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>}
      ins(%x, %k : tensor<1x3x10x10xf32>, tensor<8x3x3x3xf32>) outs(%init : tensor<1x8x8x8xf32>) -> tensor<1x8x8x8xf32>
  %pe = tensor.empty() : tensor<1x8x4x4xf32>
  %pinit = linalg.fill ins(%low : f32) outs(%pe : tensor<1x8x4x4xf32>) -> tensor<1x8x4x4xf32>
  %window = tensor.empty() : tensor<2x2xf32>
  %1 = linalg.pooling_nchw_max {dilations = dense<1> : vector<2xi64>, strides = dense<2> : vector<2xi64>}
      ins(%0, %window : tensor<1x8x8x8xf32>, tensor<2x2xf32>) outs(%pinit : tensor<1x8x4x4xf32>) -> tensor<1x8x4x4xf32>
  %2 = tensor.collapse_shape %1 [[0], [1, 2, 3]] : tensor<1x8x4x4xf32> into tensor<1x128xf32>
  %ye = tensor.empty() : tensor<1x10xf32>
  %yinit = linalg.fill ins(%zero : f32) outs(%ye : tensor<1x10xf32>) -> tensor<1x10xf32>
  %3 = linalg.matmul ins(%2, %w : tensor<1x128xf32>, tensor<128x10xf32>) outs(%yinit : tensor<1x10xf32>) -> tensor<1x10xf32>
  return %3 : tensor<1x10xf32>
}
