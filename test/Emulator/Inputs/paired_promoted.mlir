// The same with tiles of a weight, and two blocks that multiply together: each has the factors of its rows.
func.func @main(%x: tensor<512x1280xbf16> {fp8.name = "x"}, %w: tensor<128x1280xbf16> {fp8.name = "w"})
    -> (tensor<512x128xbf16> {fp8.name = "y"}) {
  %0 = fp8.amax %x block = [1, 128] : tensor<512x1280xbf16>
  %sx, %ix = fp8.compute_scale %0 format = f8E4M3FN scale_type = f32 : tensor<512x10xf32>
  %qx = fp8.quantize %x scale(%sx, %ix : tensor<512x10xf32>, tensor<512x10xf32>) : tensor<512x1280xbf16> -> <512x1280xf8E4M3FN, block = [1, 128], scale = f32>
  %1 = fp8.amax %w block = [128, 128] : tensor<128x1280xbf16>
  %sw, %iw = fp8.compute_scale %1 format = f8E4M3FN scale_type = f32 : tensor<1x10xf32>
  %qw = fp8.quantize %w scale(%sw, %iw : tensor<1x10xf32>, tensor<1x10xf32>) : tensor<128x1280xbf16> -> <128x1280xf8E4M3FN, block = [128, 128], scale = f32>
  %y = fp8.matmul %qx, %qw {fp8_gpu.config = #fp8_sm100.gemm<tile_m = 256, tile_n = 64, stages = 9, cta_group = 2>}
    : !fp8.scaled<512x1280xf8E4M3FN, block = [1, 128], scale = f32>, !fp8.scaled<128x1280xf8E4M3FN, block = [128, 128], scale = f32> -> tensor<512x128xbf16>
  return %y : tensor<512x128xbf16>
}
