// MXFP8 that those who multiply make bf16 of: tiles whose K takes more stages than there are.
func.func @main(%x: tensor<40x640xbf16> {fp8.name = "x"}, %w: tensor<256x640xbf16> {fp8.name = "w"})
    -> (tensor<40x256xf32> {fp8.name = "y"}) {
  %0 = fp8.amax %w block = [1, 32] : tensor<256x640xbf16>
  %s, %i = fp8.compute_scale %0 format = f8E4M3FN scale_type = f8E8M0FNU : tensor<256x20xf32>
  %q = fp8.quantize %w scale(%s, %i : tensor<256x20xf32>, tensor<256x20xf8E8M0FNU>) : tensor<256x640xbf16> -> <256x640xf8E4M3FN, block = [1, 32], scale = f8E8M0FNU>
  %b = fp8.dequantize %q {fp8.folded} : !fp8.scaled<256x640xf8E4M3FN, block = [1, 32], scale = f8E8M0FNU> -> tensor<256x640xbf16>
  %y = fp8.matmul %x, %b accumulate = fast {fp8_gpu.config = #fp8_sm90.gemm<tile_m = 16, tile_n = 128, stages = 4, swap_ab = true, store = direct, group = 1, lifters = 0>}
    : tensor<40x640xbf16>, tensor<256x640xbf16> -> tensor<40x256xf32>
  return %y : tensor<40x256xf32>
}
