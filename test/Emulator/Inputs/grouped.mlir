// Groups of rows that end within tiles, one after the other and each in rows of its own: the last offset is beyond the
// rows, and so is a count; some groups are empty.
func.func @main(%x: tensor<320x256xbf16> {fp8.name = "x"}, %z: tensor<4x192x256xbf16> {fp8.name = "z"},
                %w: tensor<4x128x256xbf16> {fp8.name = "w"})
    -> (tensor<320x128xbf16> {fp8.name = "y"}, tensor<320x128xbf16> {fp8.name = "part"}, tensor<4x192x128xbf16> {fp8.name = "counted"}) {
  %offsets = arith.constant dense<[0, 100, 100, 228, 1000]> : tensor<5xi32>
  %y = fp8.grouped_matmul %x, %w offsets(%offsets : tensor<5xi32>) accumulate = fast
    {fp8_gpu.config = #fp8_sm100.gemm<tile_m = 128, tile_n = 64, stages = 3>}
    : tensor<320x256xbf16>, tensor<4x128x256xbf16> -> tensor<320x128xbf16>
  %some = arith.constant dense<[0, 0, 130, 200, 200]> : tensor<5xi32>
  %part = fp8.grouped_matmul %x, %w offsets(%some : tensor<5xi32>) accumulate = fast
    {fp8_gpu.config = #fp8_sm100.gemm<tile_m = 128, tile_n = 64, stages = 3>}
    : tensor<320x256xbf16>, tensor<4x128x256xbf16> -> tensor<320x128xbf16>
  %counts = arith.constant dense<[100, 0, 500, 3]> : tensor<4xi32>
  %counted = fp8.grouped_matmul %z, %w counts(%counts : tensor<4xi32>) accumulate = fast
    {fp8_gpu.config = #fp8_sm100.gemm<tile_m = 128, tile_n = 64, stages = 3>}
    : tensor<4x192x256xbf16>, tensor<4x128x256xbf16> -> tensor<4x192x128xbf16>
  return %y, %part, %counted : tensor<320x128xbf16>, tensor<320x128xbf16>, tensor<4x192x128xbf16>
}
