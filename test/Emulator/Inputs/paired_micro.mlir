// The same with factors of 32, which each block has of its own rows and of all columns.
func.func @main(%x: tensor<768x512xbf16> {fp8.name = "x"}, %w: tensor<256x512xbf16> {fp8.name = "w"})
    -> (tensor<768x256xbf16> {fp8.name = "y"}) {
  %0 = fp8.amax %x block = [1, 32] : tensor<768x512xbf16>
  %sx, %ix = fp8.compute_scale %0 format = f8E4M3FN scale_type = f8E8M0FNU : tensor<768x16xf32>
  %qx = fp8.quantize %x scale(%sx, %ix : tensor<768x16xf32>, tensor<768x16xf8E8M0FNU>) : tensor<768x512xbf16> -> <768x512xf8E4M3FN, block = [1, 32], scale = f8E8M0FNU>
  %1 = fp8.amax %w block = [1, 32] : tensor<256x512xbf16>
  %sw, %iw = fp8.compute_scale %1 format = f8E4M3FN scale_type = f8E8M0FNU : tensor<256x16xf32>
  %qw = fp8.quantize %w scale(%sw, %iw : tensor<256x16xf32>, tensor<256x16xf8E8M0FNU>) : tensor<256x512xbf16> -> <256x512xf8E4M3FN, block = [1, 32], scale = f8E8M0FNU>
  %y = fp8.matmul %qx, %qw {fp8_gpu.config = #fp8_sm100.gemm<tile_m = 256, tile_n = 64, stages = 9, cta_group = 2>}
    : !fp8.scaled<768x512xf8E4M3FN, block = [1, 32], scale = f8E8M0FNU>, !fp8.scaled<256x512xf8E4M3FN, block = [1, 32], scale = f8E8M0FNU> -> tensor<768x256xbf16>
  return %y : tensor<768x256xbf16>
}
