// Attention of two tiles of queries, one after the other, to keys that do not fill their last tile.
func.func @main(%q: tensor<1x200x2x64xbf16> {fp8.name = "q"}, %k: tensor<1x700x1x64xbf16> {fp8.name = "k"}, %v: tensor<1x700x1x64xbf16> {fp8.name = "v"}) -> tensor<1x200x2x64xbf16> {
  %0 = fp8.attention %q, %k, %v scale = 0.125 : tensor<1x200x2x64xbf16>, tensor<1x700x1x64xbf16>, tensor<1x700x1x64xbf16> -> tensor<1x200x2x64xbf16>
  return %0 : tensor<1x200x2x64xbf16>
}
