// Attention whose shares are left out in part, of queries that do not fill a tile.
!q = tensor<1x100x1x64xbf16>
!k = tensor<1x150x1x64xbf16>
func.func @main(%q: !q {fp8.name = "q"}, %k: !k {fp8.name = "k"}, %v: !k {fp8.name = "v"}) -> !q {
  %state = arith.constant dense<[12, 34]> : tensor<2xi64>
  %0 = fp8.attention %q, %k, %v dropout(%state : tensor<2xi64>) rate = 0.3 scale = 0.125 : !q, !k, !k -> !q
  return %0 : !q
}
