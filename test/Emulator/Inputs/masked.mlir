// Attention with a cap and a mask that tells queries and keys apart.
func.func @main(%q: tensor<1x70x1x64xbf16> {fp8.name = "q"}, %k: tensor<1x150x1x64xbf16> {fp8.name = "k"}, %v: tensor<1x150x1x64xbf16> {fp8.name = "v"}) -> tensor<1x70x1x64xbf16> {
  %empty = tensor.empty() : tensor<70x150xi1>
  %mask = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} outs(%empty : tensor<70x150xi1>) {
  ^bb0(%x: i1):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %sum = arith.addi %i, %j : index
    %two = arith.constant 2 : index
    %zero = arith.constant 0 : index
    %rest = arith.remui %sum, %two : index
    %even = arith.cmpi eq, %rest, %zero : index
    linalg.yield %even : i1
  } -> tensor<70x150xi1>
  %0 = fp8.attention %q, %k, %v mask(%mask : tensor<70x150xi1>) scale = 0.125 cap = 2.0 : tensor<1x70x1x64xbf16>, tensor<1x150x1x64xbf16>, tensor<1x150x1x64xbf16> -> tensor<1x70x1x64xbf16>
  return %0 : tensor<1x70x1x64xbf16>
}
