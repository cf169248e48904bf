// RUN: fp8-opt %s --fp8-annotate-gemms --fp8-apply-recipe=recipe=current --fp8-remarks=text:- -o /dev/null | FileCheck %s

// A softmax of what a weight is multiplied to make is no attention's, however the weight is known: the linear layers
// around it are as their recipe says.

!t = tensor<64x64xf32>
!b = tensor<2x64x64xf32>

// Matrices are weights where nothing is marked, through gradients too.
// CHECK-NOT: attention
// CHECK: unmarked.gate: fp8; role fprop,
// CHECK: unmarked.down: fp8; role fprop,
// CHECK: unmarked.dgrad: fp8; role dgrad,
// CHECK: unmarked.wgrad: fp8;
func.func @unmarked(%x: !t, %gate: !t, %w: !t, %zero: !t, %dy: !t {fp8.grad}) -> (!t, !t) {
  %s = linalg.matmul ins(%x, %gate : !t, !t) outs(%zero : !t) -> !t loc("unmarked.gate")
  %p = linalg.softmax dimension(1) ins(%s : !t) outs(%zero : !t) -> !t
  %y = linalg.matmul ins(%p, %w : !t, !t) outs(%zero : !t) -> !t loc("unmarked.down")
  %dp = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>]
      ins(%dy, %w : !t, !t) outs(%zero : !t) -> !t loc("unmarked.dgrad")
  %ds = linalg.mul ins(%p, %dp : !t, !t) outs(%zero : !t) -> !t
  %dw = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
      ins(%ds, %x : !t, !t) outs(%zero : !t) -> !t loc("unmarked.wgrad")
  return %y, %dw : !t, !t
}

// Weights that are merged, with a product of adapters too.
// CHECK: merged.logits: fp8; role fprop,
// CHECK: merged.codebook: fp8; role fprop,
// CHECK: merged.pool: fp8; role fprop,
// CHECK: adapted.both: fp8; role fprop,
// CHECK: adapted.logits: fp8; role fprop,
// CHECK: adapted.pool: fp8; role fprop,
func.func @merged(%x: !t, %w: !t {fp8.weight}, %a: !t {fp8.weight}, %codes: !t {fp8.weight}, %zero: !t) -> (!t, !t) {
  %sum = linalg.add ins(%w, %a : !t, !t) outs(%zero : !t) -> !t
  %s = linalg.matmul ins(%x, %sum : !t, !t) outs(%zero : !t) -> !t loc("merged.logits")
  %p = linalg.softmax dimension(1) ins(%s : !t) outs(%zero : !t) -> !t
  %y = linalg.matmul ins(%p, %codes : !t, !t) outs(%zero : !t) -> !t loc("merged.codebook")
  %m = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
      ins(%p, %x : !t, !t) outs(%zero : !t) -> !t loc("merged.pool")
  return %y, %m : !t, !t
}
func.func @adapted(%x: !t, %w: !t {fp8.weight}, %a: !t {fp8.weight}, %b: !t {fp8.weight}, %zero: !t) -> !t {
  %ab = linalg.matmul ins(%a, %b : !t, !t) outs(%zero : !t) -> !t loc("adapted.both")
  %sum = linalg.add ins(%w, %ab : !t, !t) outs(%zero : !t) -> !t
  %s = linalg.matmul ins(%x, %sum : !t, !t) outs(%zero : !t) -> !t loc("adapted.logits")
  %p = linalg.softmax dimension(1) ins(%s : !t) outs(%zero : !t) -> !t
  %y = linalg.matmul ins(%p, %x : !t, !t) outs(%zero : !t) -> !t loc("adapted.pool")
  return %y : !t
}

// A weight times what scales it.
// CHECK: scaled.logits: fp8; role fprop,
// CHECK: scaled.pool: fp8; role fprop,
func.func @scaled(%x: !t, %w: !t {fp8.weight}, %scale: !t, %zero: !t) -> !t {
  %product = linalg.mul ins(%w, %scale : !t, !t) outs(%zero : !t) -> !t
  %s = linalg.matmul ins(%x, %product : !t, !t) outs(%zero : !t) -> !t loc("scaled.logits")
  %p = linalg.softmax dimension(1) ins(%s : !t) outs(%zero : !t) -> !t
  %y = linalg.matmul ins(%p, %x : !t, !t) outs(%zero : !t) -> !t loc("scaled.pool")
  return %y : !t
}

// A loss's gradient that one operation computes, which adds.
// CHECK: fused.logits: fp8; role fprop,
// CHECK: fused.dx: fp8; role fprop,
func.func @fused(%x: !b, %w: !b, %right: !b, %factor: !b, %zero: !b) -> !b {
  %s = linalg.batch_matmul ins(%x, %w : !b, !b) outs(%zero : !b) -> !b loc("fused.logits")
  %p = linalg.softmax dimension(2) ins(%s : !b) outs(%zero : !b) -> !b
  %d = math.fma %p, %factor, %right : !b
  %dx = linalg.batch_matmul ins(%d, %w : !b, !b) outs(%zero : !b) -> !b loc("fused.dx")
  return %dx : !b
}

// Activations are none: what a weight is multiplied to make, with a norm's weight, a bias and a residual, makes attention.
// CHECK: layer.q: fp8; role fprop,
// CHECK: layer.k: fp8; role fprop,
// CHECK: layer.scores: high precision; role attention.qk,
// CHECK: layer.values: high precision; role attention.pv,
func.func @layer(%x: !t, %q: !t {fp8.weight}, %k: !t {fp8.weight}, %gain: tensor<64xf32> {fp8.weight}, %zero: !t) -> !t {
  %wide = linalg.broadcast ins(%gain : tensor<64xf32>) outs(%zero : !t) dimensions = [0]
  %n = linalg.mul ins(%x, %wide : !t, !t) outs(%zero : !t) -> !t
  %nq = linalg.matmul ins(%n, %q : !t, !t) outs(%zero : !t) -> !t loc("layer.q")
  %bq = linalg.add ins(%nq, %wide : !t, !t) outs(%zero : !t) -> !t
  %nk = linalg.matmul ins(%n, %k : !t, !t) outs(%zero : !t) -> !t loc("layer.k")
  %rk = linalg.add ins(%nk, %x : !t, !t) outs(%zero : !t) -> !t
  %s = linalg.matmul ins(%bq, %rk : !t, !t) outs(%zero : !t) -> !t loc("layer.scores")
  %p = linalg.softmax dimension(1) ins(%s : !t) outs(%zero : !t) -> !t
  %y = linalg.matmul ins(%p, %n : !t, !t) outs(%zero : !t) -> !t loc("layer.values")
  return %y : !t
}

// Nor are heads that a matrix holds where nothing is marked.
// CHECK: heads.scores: high precision; role attention.qk,
// CHECK: heads.values: high precision; role attention.pv,
func.func @heads(%x: tensor<128x64xf32>, %zero: !b) -> !b {
  %q = tensor.expand_shape %x [[0, 1], [2]] output_shape [2, 64, 64] : tensor<128x64xf32> into !b
  %s = linalg.batch_matmul ins(%q, %q : !b, !b) outs(%zero : !b) -> !b loc("heads.scores")
  %p = linalg.softmax dimension(2) ins(%s : !b) outs(%zero : !b) -> !b
  %y = linalg.batch_matmul ins(%p, %q : !b, !b) outs(%zero : !b) -> !b loc("heads.values")
  return %y : !b
}
