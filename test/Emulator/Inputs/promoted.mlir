// Factors of 1x128 that are no powers of two, each way: tiles whose K blocks are promoted, more than there are sets of
// sums and stages.
func.func @main(%x: tensor<256x1280xbf16> {fp8.name = "x"}, %w: tensor<128x1280xbf16> {fp8.name = "w"})
    -> (tensor<256x128xbf16> {fp8.name = "y"}) {
  %0 = fp8.amax %x block = [1, 128] : tensor<256x1280xbf16>
  %sx, %ix = fp8.compute_scale %0 format = f8E4M3FN scale_type = f32 : tensor<256x10xf32>
  %qx = fp8.quantize %x scale(%sx, %ix : tensor<256x10xf32>, tensor<256x10xf32>) : tensor<256x1280xbf16> -> <256x1280xf8E4M3FN, block = [1, 128], scale = f32>
  %1 = fp8.amax %w block = [1, 128] : tensor<128x1280xbf16>
  %sw, %iw = fp8.compute_scale %1 format = f8E4M3FN scale_type = f32 : tensor<128x10xf32>
  %qw = fp8.quantize %w scale(%sw, %iw : tensor<128x10xf32>, tensor<128x10xf32>) : tensor<128x1280xbf16> -> <128x1280xf8E4M3FN, block = [1, 128], scale = f32>
  %y = fp8.matmul %qx, %qw {fp8_gpu.config = #fp8_sm100.gemm<tile_m = 128, tile_n = 64, stages = 6, staging = 1, epilogue_warpgroups = 2>}
    : !fp8.scaled<256x1280xf8E4M3FN, block = [1, 128], scale = f32>, !fp8.scaled<128x1280xf8E4M3FN, block = [1, 128], scale = f32> -> tensor<256x128xbf16>
  return %y : tensor<256x128xbf16>
}
