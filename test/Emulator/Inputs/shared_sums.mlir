// Factors of 16 beside 256 columns, of which two sets of sums share 64: two parts of those that a thread takes.
func.func @main(%x: tensor<384x512xbf16> {fp8.name = "x"}, %w: tensor<512x512xbf16> {fp8.name = "w"})
    -> (tensor<384x512xf32> {fp8.name = "y"}) {
  %0 = fp8.amax %x block = [1, 16] : tensor<384x512xbf16>
  %1 = fp8.amax %0 block = [*, *] : tensor<384x32xf32>
  %sx, %ix, %tx = fp8.compute_scale %0 tensor_amax(%1 : tensor<1x1xf32>) format = f4E2M1FN scale_type = f8E4M3FN : tensor<384x32xf32>
  %qx = fp8.quantize %x scale(%sx, %ix : tensor<384x32xf32>, tensor<384x32xf8E4M3FN>) tensor_scale_inv(%tx : tensor<1x1xf32>) : tensor<384x512xbf16> -> <384x512xf4E2M1FN, block = [1, 16], scale = f8E4M3FN, tensor_scale = f32>
  %2 = fp8.amax %w block = [1, 16] : tensor<512x512xbf16>
  %3 = fp8.amax %2 block = [*, *] : tensor<512x32xf32>
  %sw, %iw, %tw = fp8.compute_scale %2 tensor_amax(%3 : tensor<1x1xf32>) format = f4E2M1FN scale_type = f8E4M3FN : tensor<512x32xf32>
  %qw = fp8.quantize %w scale(%sw, %iw : tensor<512x32xf32>, tensor<512x32xf8E4M3FN>) tensor_scale_inv(%tw : tensor<1x1xf32>) : tensor<512x512xbf16> -> <512x512xf4E2M1FN, block = [1, 16], scale = f8E4M3FN, tensor_scale = f32>
  %y = fp8.matmul %qx, %qw {fp8_gpu.config = #fp8_sm100.gemm<tile_m = 128, tile_n = 256, stages = 3>}
    : !fp8.scaled<384x512xf4E2M1FN, block = [1, 16], scale = f8E4M3FN, tensor_scale = f32>, !fp8.scaled<512x512xf4E2M1FN, block = [1, 16], scale = f8E4M3FN, tensor_scale = f32> -> tensor<384x512xf32>
  return %y : tensor<384x512xf32>
}
