// Gradients of attention, two tiles of queries of each head, whose sums three blocks have parts of.
!q = tensor<1x100x1x128xbf16>
!k = tensor<1x300x1x128xbf16>
!r = tensor<1x1x100xf32>
func.func @main(%grad: !q {fp8.name = "grad"}, %q: !q {fp8.name = "q"}, %k: !k {fp8.name = "k"}, %v: !k {fp8.name = "v"},
    %lse: !r {fp8.name = "lse"}, %delta: !r {fp8.name = "delta"}) -> (!q, !k, !k) {
  %dq, %dk, %dv = fp8.attention_backward %grad, %q, %k, %v, %lse, %delta scale = 0.088 : !q, !q, !k, !k, !r, !r -> !q, !k, !k
  return %dq, %dk, %dv : !q, !k, !k
}
