// Gradients of an attention with a cap, whose shares are left out in part, and whose queries see what their ranges say.
!q = tensor<1x100x1x64xbf16>
!k = tensor<1x300x1x64xbf16>
!r = tensor<1x1x100xf32>
func.func @main(%grad: !q {fp8.name = "grad"}, %q: !q {fp8.name = "q"}, %k: !k {fp8.name = "k"}, %v: !k {fp8.name = "v"},
    %lse: !r {fp8.name = "lse"}, %delta: !r {fp8.name = "delta"}) -> (!q, !k, !k) {
  %state = arith.constant dense<[12, 34]> : tensor<2xi64>
  %empty = tensor.empty() : tensor<1x100x2xi32>
  %ranges = linalg.generic {indexing_maps = [affine_map<(b, i, s) -> (b, i, s)>], iterator_types = ["parallel", "parallel", "parallel"]} outs(%empty : tensor<1x100x2xi32>) {
  ^bb0(%x: i32):
    %i = linalg.index 1 : index
    %s = linalg.index 2 : index
    %length = arith.constant 190 : index
    %step = arith.muli %s, %length : index
    %end = arith.addi %i, %step : index
    %number = arith.index_cast %end : index to i32
    linalg.yield %number : i32
  } -> tensor<1x100x2xi32>
  %dq, %dk, %dv = fp8.attention_backward %grad, %q, %k, %v, %lse, %delta key_ranges(%ranges : tensor<1x100x2xi32>)
      dropout(%state : tensor<2xi64>) rate = 0.3 scale = 0.125 cap = 2.0 : !q, !q, !k, !k, !r, !r -> !q, !k, !k
  return %dq, %dk, %dv : !q, !k, !k
}
