// Attention to keys of batches that begin and end where these say, and of queries that see fewer; with sinks.
func.func @main(%q: tensor<2x130x1x64xbf16> {fp8.name = "q"}, %k: tensor<2x400x1x64xbf16> {fp8.name = "k"}, %v: tensor<2x400x1x64xbf16> {fp8.name = "v"}) -> tensor<2x130x1x64xbf16> {
  %starts = arith.constant dense<[135, 3]> : tensor<2xi32>
  %lengths = arith.constant dense<[400, 270]> : tensor<2xi32>
  %ranges = arith.constant dense<[[[10, 380]], [[5, 260]]]> : tensor<2x1x2xi32>
  %empty = tensor.empty() : tensor<2x130x2xi32>
  %all = linalg.generic {indexing_maps = [affine_map<(b, i, s) -> (b, 0, s)>, affine_map<(b, i, s) -> (b, i, s)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%ranges : tensor<2x1x2xi32>) outs(%empty : tensor<2x130x2xi32>) {
  ^bb0(%x: i32, %y: i32):
    linalg.yield %x : i32
  } -> tensor<2x130x2xi32>
  %sinks = arith.constant dense<0.5> : tensor<1xf32>
  %0 = fp8.attention %q, %k, %v key_lengths(%lengths : tensor<2xi32>) key_starts(%starts : tensor<2xi32>) key_ranges(%all : tensor<2x130x2xi32>) sinks(%sinks : tensor<1xf32>) scale = 0.125
      : tensor<2x130x1x64xbf16>, tensor<2x400x1x64xbf16>, tensor<2x400x1x64xbf16> -> tensor<2x130x1x64xbf16>
  return %0 : tensor<2x130x1x64xbf16>
}
