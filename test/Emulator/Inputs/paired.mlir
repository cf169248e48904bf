// A matmul whose tiles two blocks compute together.
func.func @main(%x: tensor<768x256xbf16> {fp8.name = "x"}, %w: tensor<512x256xbf16> {fp8.name = "w"})
    -> (tensor<768x512xbf16> {fp8.name = "y"}) {
  %y = fp8.matmul %x, %w accumulate = fast
    {fp8_gpu.config = #fp8_sm100.gemm<tile_m = 256, tile_n = 64, stages = 9, cta_group = 2>}
    : tensor<768x256xbf16>, tensor<512x256xbf16> -> tensor<768x512xbf16>
  return %y : tensor<768x512xbf16>
}
