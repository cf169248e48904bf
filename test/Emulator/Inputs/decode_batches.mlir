// Attention of one query to a head of several batches, so that a block has tiles of its own and shares one.
func.func @main(%q: tensor<5x1x4x64xbf16> {fp8.name = "q"}, %k: tensor<5x300x1x64xbf16> {fp8.name = "k"}, %v: tensor<5x300x1x64xbf16> {fp8.name = "v"}) -> tensor<5x1x4x64xbf16> {
  %0 = fp8.attention %q, %k, %v scale = 0.125 : tensor<5x1x4x64xbf16>, tensor<5x300x1x64xbf16>, tensor<5x300x1x64xbf16> -> tensor<5x1x4x64xbf16>
  return %0 : tensor<5x1x4x64xbf16>
}
