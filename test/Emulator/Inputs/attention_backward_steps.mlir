// Gradients of attention, more tiles of queries than stages, whose sums two blocks have parts of.
!q = tensor<1x300x1x64xbf16>
!k = tensor<1x200x1x64xbf16>
!r = tensor<1x1x300xf32>
func.func @main(%grad: !q {fp8.name = "grad"}, %q: !q {fp8.name = "q"}, %k: !k {fp8.name = "k"}, %v: !k {fp8.name = "v"},
    %lse: !r {fp8.name = "lse"}, %delta: !r {fp8.name = "delta"}) -> (!q, !k, !k) {
  %dq, %dk, %dv = fp8.attention_backward %grad, %q, %k, %v, %lse, %delta scale = 0.125 window = [*, 0] bottom_right : !q, !q, !k, !k, !r, !r -> !q, !k, !k
  return %dq, %dk, %dv : !q, !k, !k
}
