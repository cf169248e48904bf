// Attention of one query to a head, whose keys several blocks share.
func.func @main(%q: tensor<1x1x4x64xbf16> {fp8.name = "q"}, %k: tensor<1x2500x2x64xbf16> {fp8.name = "k"}, %v: tensor<1x2500x2x64xbf16> {fp8.name = "v"}) -> tensor<1x1x4x64xbf16> {
  %0 = fp8.attention %q, %k, %v scale = 0.125 : tensor<1x1x4x64xbf16>, tensor<1x2500x2x64xbf16>, tensor<1x2500x2x64xbf16> -> tensor<1x1x4x64xbf16>
  return %0 : tensor<1x1x4x64xbf16>
}
