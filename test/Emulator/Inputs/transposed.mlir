// Codes of B with rows innermost: tiles whose K takes more stages than there are, and subtiles that share lines.
!b = !fp8.scaled<640x256xf8E4M3FN, block = [*, *], scale = f32>
func.func @main(%x: tensor<80x640xbf16> {fp8.name = "x"}, %w: tensor<640x256xbf16> {fp8.name = "w"})
    -> (tensor<80x256xbf16> {fp8.name = "y"}) {
  %m = fp8.amax %x block = [*, *] : tensor<80x640xbf16>
  %s, %i = fp8.compute_scale %m format = f8E4M3FN scale_type = f32 : tensor<1x1xf32>
  %a = fp8.quantize %x scale(%s, %i : tensor<1x1xf32>, tensor<1x1xf32>) : tensor<80x640xbf16> -> <80x640xf8E4M3FN, block = [*, *], scale = f32>
  %n = fp8.amax %w block = [*, *] : tensor<640x256xbf16>
  %t, %j = fp8.compute_scale %n format = f8E4M3FN scale_type = f32 : tensor<1x1xf32>
  %b = fp8.quantize %w scale(%t, %j : tensor<1x1xf32>, tensor<1x1xf32>) : tensor<640x256xbf16> -> <640x256xf8E4M3FN, block = [*, *], scale = f32>
  %y = fp8.matmul %a, %b transpose_b accumulate = fast {fp8_gpu.config = #fp8_sm90.gemm<tile_m = 64, tile_n = 128, stages = 4, swap_ab = true, group = 1, lifters = 0>}
    : !fp8.scaled<80x640xf8E4M3FN, block = [*, *], scale = f32>, !b -> tensor<80x256xbf16>
  return %y : tensor<80x256xbf16>
}
