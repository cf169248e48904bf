// RUN: fp8-opt %s --fp8-annotate-gemms --fp8-apply-recipe=recipe=current --fp8-remarks=text:- -o /dev/null | FileCheck %s
// RUN: fp8-opt %s --fp8-annotate-gemms --fp8-apply-recipe="recipe=rowwise attention-recipe=current" --fp8-remarks=text:- -o /dev/null | FileCheck %s --check-prefix=GIVEN

// A recipe of linear layers is not for the products of attention that a program spells, forward or backward; what is
// given for attention is.

!qkv = tensor<2x64x64xf32>
!row = tensor<2x64xf32>

// CHECK: forward.scores: high precision; role attention.qk, shape batch=2 M=64 N=64 K=64, recipe none, reason it is a product of attention, to which no recipe applies: those of linear layers are not for it, suggestion give one as attention-recipe, in a rule with the role attention.qk in a recipe file or as attribute fp8.attention_recipe
// CHECK: forward.values: high precision; role attention.pv,
// GIVEN: forward.scores: fp8; role attention.qk, {{.*}} recipe current, a f8E4M3FN[*x*]f32, b f8E4M3FN[*x*]f32
// GIVEN: forward.values: fp8; role attention.pv, {{.*}} recipe current,
// Gradients are as the recipe has them, though no argument says that it is one.
// CHECK: forward.dv: high precision; role attention.dv,
// CHECK: forward.dp: high precision; role attention.dp,
// CHECK: forward.dq: high precision; role attention.dq,
// CHECK: forward.dk: high precision; role attention.dk,
// GIVEN: forward.dv: fp8; role attention.dv, {{.*}} a f8E4M3FN[*x*]f32, b f8E5M2[*x*]f32
// GIVEN: forward.dp: fp8; role attention.dp, {{.*}} a f8E5M2[*x*]f32, b f8E4M3FN[*x*]f32
// GIVEN: forward.dq: fp8; role attention.dq, {{.*}} a f8E5M2[*x*]f32, b f8E4M3FN[*x*]f32
// GIVEN: forward.dk: fp8; role attention.dk, {{.*}} a f8E5M2[*x*]f32, b f8E4M3FN[*x*]f32
func.func @forward(%q: !qkv, %k: !qkv, %v: !qkv, %grad: !qkv, %zero: !qkv, %low: !row, %none: !row) -> (!qkv, !qkv, !qkv, !qkv) {
  %s = linalg.batch_matmul indexing_maps = [affine_map<(b, m, n, k) -> (b, m, k)>, affine_map<(b, m, n, k) -> (b, n, k)>, affine_map<(b, m, n, k) -> (b, m, n)>]
      ins(%q, %k : !qkv, !qkv) outs(%zero : !qkv) -> !qkv loc("forward.scores")
  %max = linalg.reduce ins(%s : !qkv) outs(%low : !row) dimensions = [2] (%in: f32, %acc: f32) {
    %m = arith.maximumf %in, %acc : f32
    linalg.yield %m : f32
  }
  %wide_max = linalg.broadcast ins(%max : !row) outs(%zero : !qkv) dimensions = [2]
  %distance = linalg.sub ins(%s, %wide_max : !qkv, !qkv) outs(%zero : !qkv) -> !qkv
  %e = linalg.exp ins(%distance : !qkv) outs(%zero : !qkv) -> !qkv
  %sum = linalg.reduce ins(%e : !qkv) outs(%none : !row) dimensions = [2] (%in: f32, %acc: f32) {
    %a = arith.addf %in, %acc : f32
    linalg.yield %a : f32
  }
  %wide_sum = linalg.broadcast ins(%sum : !row) outs(%zero : !qkv) dimensions = [2]
  %p = linalg.div ins(%e, %wide_sum : !qkv, !qkv) outs(%zero : !qkv) -> !qkv
  %o = linalg.batch_matmul ins(%p, %v : !qkv, !qkv) outs(%zero : !qkv) -> !qkv loc("forward.values")

  %turned = linalg.transpose ins(%p : !qkv) outs(%zero : !qkv) permutation = [0, 2, 1]
  %dv = linalg.batch_matmul ins(%turned, %grad : !qkv, !qkv) outs(%zero : !qkv) -> !qkv loc("forward.dv")
  %dp = linalg.batch_matmul indexing_maps = [affine_map<(b, m, n, k) -> (b, m, k)>, affine_map<(b, m, n, k) -> (b, n, k)>, affine_map<(b, m, n, k) -> (b, m, n)>]
      ins(%grad, %v : !qkv, !qkv) outs(%zero : !qkv) -> !qkv loc("forward.dp")
  %products = linalg.mul ins(%p, %dp : !qkv, !qkv) outs(%zero : !qkv) -> !qkv
  %delta = linalg.reduce ins(%products : !qkv) outs(%none : !row) dimensions = [2] (%in: f32, %acc: f32) {
    %a = arith.addf %in, %acc : f32
    linalg.yield %a : f32
  }
  %wide_delta = linalg.broadcast ins(%delta : !row) outs(%zero : !qkv) dimensions = [2]
  %centred = linalg.sub ins(%dp, %wide_delta : !qkv, !qkv) outs(%zero : !qkv) -> !qkv
  %ds = linalg.mul ins(%p, %centred : !qkv, !qkv) outs(%zero : !qkv) -> !qkv
  %dq = linalg.batch_matmul ins(%ds, %k : !qkv, !qkv) outs(%zero : !qkv) -> !qkv loc("forward.dq")
  %ds_turned = linalg.transpose ins(%ds : !qkv) outs(%zero : !qkv) permutation = [0, 2, 1]
  %dk = linalg.batch_matmul ins(%ds_turned, %q : !qkv, !qkv) outs(%zero : !qkv) -> !qkv loc("forward.dk")
  return %o, %dq, %dk, %dv : !qkv, !qkv, !qkv, !qkv
}

// linalg.softmax, and shares that move through reshapes before they are multiplied.
// CHECK: named.scores: high precision; role attention.qk,
// CHECK: named.values: high precision; role attention.pv,
func.func @named(%q: !qkv, %k: !qkv, %v: tensor<1x2x64x64xf32>, %zero: !qkv, %out: tensor<1x2x64x64xf32>) -> tensor<1x2x64x64xf32> {
  %s = linalg.batch_matmul ins(%q, %k : !qkv, !qkv) outs(%zero : !qkv) -> !qkv loc("named.scores")
  %p = linalg.softmax dimension(2) ins(%s : !qkv) outs(%zero : !qkv) -> !qkv
  %wide = tensor.expand_shape %p [[0, 1], [2], [3]] output_shape [1, 2, 64, 64] : !qkv into tensor<1x2x64x64xf32>
  %o = linalg.contract indexing_maps = [affine_map<(a, b, m, n, k) -> (a, b, m, k)>, affine_map<(a, b, m, n, k) -> (a, b, k, n)>, affine_map<(a, b, m, n, k) -> (a, b, m, n)>]
      ins(%wide, %v : tensor<1x2x64x64xf32>, tensor<1x2x64x64xf32>) outs(%out : tensor<1x2x64x64xf32>) -> tensor<1x2x64x64xf32> loc("named.values")
  return %o : tensor<1x2x64x64xf32>
}

// No attention: the softmax of a marked weight's product, which chooses experts.
// CHECK: router.gate: fp8; role fprop,
// CHECK: router.mix: fp8; role fprop,
// GIVEN: router.gate: fp8; {{.*}} recipe rowwise
!t = tensor<64x64xf32>
func.func @router(%x: !t, %gate: !t {fp8.weight}, %experts: !t, %zero: !t) -> !t {
  %s = linalg.matmul ins(%x, %gate : !t, !t) outs(%zero : !t) -> !t loc("router.gate")
  %p = linalg.softmax dimension(1) ins(%s : !t) outs(%zero : !t) -> !t
  %y = linalg.matmul ins(%p, %experts : !t, !t) outs(%zero : !t) -> !t loc("router.mix")
  return %y : !t
}

// No attention: a gate is an exponential that nothing sums.
// CHECK: gated.up: fp8; role fprop,
// CHECK: gated.down: fp8; role fprop,
func.func @gated(%x: !t, %up: !t, %down: !t, %zero: !t, %one: !t) -> !t {
  %s = linalg.matmul ins(%x, %up : !t, !t) outs(%zero : !t) -> !t loc("gated.up")
  %n = linalg.negf ins(%s : !t) outs(%zero : !t) -> !t
  %e = linalg.exp ins(%n : !t) outs(%zero : !t) -> !t
  %d = linalg.add ins(%e, %one : !t, !t) outs(%zero : !t) -> !t
  %g = linalg.div ins(%s, %d : !t, !t) outs(%zero : !t) -> !t
  %y = linalg.matmul ins(%g, %down : !t, !t) outs(%zero : !t) -> !t loc("gated.down")
  return %y : !t
}

// No attention: the gradient of a loss is shares less what was right.
// CHECK: loss.logits: fp8; role fprop,
// CHECK: loss.dx: fp8; role fprop,
func.func @loss(%x: !t, %w: !t, %right: !t, %zero: !t) -> !t {
  %s = linalg.matmul ins(%x, %w : !t, !t) outs(%zero : !t) -> !t loc("loss.logits")
  %p = linalg.softmax dimension(1) ins(%s : !t) outs(%zero : !t) -> !t
  %d = linalg.sub ins(%p, %right : !t, !t) outs(%zero : !t) -> !t
  %y = linalg.matmul ins(%d, %w : !t, !t) outs(%zero : !t) -> !t loc("loss.dx")
  return %y : !t
}

// What two softmaxes differ by is shares, as in differential attention.
// CHECK: differential.first: high precision; role attention.qk,
// CHECK: differential.second: high precision; role attention.qk,
// CHECK: differential.values: high precision; role attention.pv,
func.func @differential(%q: !qkv, %k: !qkv, %q2: !qkv, %k2: !qkv, %v: !qkv, %zero: !qkv, %lambda: !qkv) -> !qkv {
  %s = linalg.batch_matmul ins(%q, %k : !qkv, !qkv) outs(%zero : !qkv) -> !qkv loc("differential.first")
  %p = linalg.softmax dimension(2) ins(%s : !qkv) outs(%zero : !qkv) -> !qkv
  %s2 = linalg.batch_matmul ins(%q2, %k2 : !qkv, !qkv) outs(%zero : !qkv) -> !qkv loc("differential.second")
  %p2 = linalg.softmax dimension(2) ins(%s2 : !qkv) outs(%zero : !qkv) -> !qkv
  %l = linalg.mul ins(%p2, %lambda : !qkv, !qkv) outs(%zero : !qkv) -> !qkv
  %d = linalg.sub ins(%p, %l : !qkv, !qkv) outs(%zero : !qkv) -> !qkv
  %o = linalg.batch_matmul ins(%d, %v : !qkv, !qkv) outs(%zero : !qkv) -> !qkv loc("differential.values")
  return %o : !qkv
}
// The same of tensors, and in one operation.
// CHECK: tensors.values: high precision; role attention.pv,
// CHECK: fused.values: high precision; role attention.pv,
#i = affine_map<(a, b, c) -> (a, b, c)>
func.func @tensors(%q: !qkv, %k: !qkv, %q2: !qkv, %k2: !qkv, %v: !qkv, %zero: !qkv, %lambda: !qkv) -> (!qkv, !qkv) {
  %s = linalg.batch_matmul ins(%q, %k : !qkv, !qkv) outs(%zero : !qkv) -> !qkv loc("tensors.first")
  %p = linalg.softmax dimension(2) ins(%s : !qkv) outs(%zero : !qkv) -> !qkv
  %s2 = linalg.batch_matmul ins(%q2, %k2 : !qkv, !qkv) outs(%zero : !qkv) -> !qkv loc("tensors.second")
  %p2 = linalg.softmax dimension(2) ins(%s2 : !qkv) outs(%zero : !qkv) -> !qkv
  %l = arith.mulf %p2, %lambda : !qkv
  %d = arith.subf %p, %l : !qkv
  %o = linalg.batch_matmul ins(%d, %v : !qkv, !qkv) outs(%zero : !qkv) -> !qkv loc("tensors.values")
  %f = linalg.generic {indexing_maps = [#i, #i, #i, #i], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%p, %p2, %lambda : !qkv, !qkv, !qkv) outs(%zero : !qkv) {
  ^bb0(%x: f32, %y: f32, %z: f32, %unused: f32):
    %1 = arith.mulf %y, %z : f32
    %2 = arith.subf %x, %1 : f32
    linalg.yield %2 : f32
  } -> !qkv
  %o2 = linalg.batch_matmul ins(%f, %v : !qkv, !qkv) outs(%zero : !qkv) -> !qkv loc("fused.values")
  return %o, %o2 : !qkv, !qkv
}

// A backward in a function of its own, of shares that a forward has kept.
// CHECK: saved.dv: high precision; role attention.dv,
// CHECK: saved.dp: high precision; role attention.dp,
// CHECK: saved.dq: high precision; role attention.dq,
// CHECK: saved.dk: high precision; role attention.dk,
// GIVEN: saved.dv: fp8; role attention.dv, {{.*}} a f8E4M3FN[*x*]f32, b f8E5M2[*x*]f32
// GIVEN: saved.dp: fp8; role attention.dp, {{.*}} a f8E5M2[*x*]f32, b f8E4M3FN[*x*]f32
// GIVEN: saved.dq: fp8; role attention.dq, {{.*}} a f8E5M2[*x*]f32, b f8E4M3FN[*x*]f32
// GIVEN: saved.dk: fp8; role attention.dk, {{.*}} a f8E5M2[*x*]f32, b f8E4M3FN[*x*]f32
func.func @saved(%p: !qkv, %q: !qkv, %k: !qkv, %v: !qkv, %grad: !qkv, %zero: !qkv, %none: !row) -> (!qkv, !qkv, !qkv) {
  %turned = linalg.transpose ins(%p : !qkv) outs(%zero : !qkv) permutation = [0, 2, 1]
  %dv = linalg.batch_matmul ins(%turned, %grad : !qkv, !qkv) outs(%zero : !qkv) -> !qkv loc("saved.dv")
  %dp = linalg.batch_matmul indexing_maps = [affine_map<(b, m, n, k) -> (b, m, k)>, affine_map<(b, m, n, k) -> (b, n, k)>, affine_map<(b, m, n, k) -> (b, m, n)>]
      ins(%grad, %v : !qkv, !qkv) outs(%zero : !qkv) -> !qkv loc("saved.dp")
  %products = linalg.mul ins(%dp, %p : !qkv, !qkv) outs(%zero : !qkv) -> !qkv
  %delta = linalg.reduce ins(%products : !qkv) outs(%none : !row) dimensions = [2] (%in: f32, %acc: f32) {
    %a = arith.addf %in, %acc : f32
    linalg.yield %a : f32
  }
  %wide_delta = linalg.broadcast ins(%delta : !row) outs(%zero : !qkv) dimensions = [2]
  %lost = linalg.mul ins(%p, %wide_delta : !qkv, !qkv) outs(%zero : !qkv) -> !qkv
  %ds = linalg.sub ins(%products, %lost : !qkv, !qkv) outs(%zero : !qkv) -> !qkv
  %dq = linalg.batch_matmul ins(%ds, %k : !qkv, !qkv) outs(%zero : !qkv) -> !qkv loc("saved.dq")
  %ds_turned = linalg.transpose ins(%ds : !qkv) outs(%zero : !qkv) permutation = [0, 2, 1]
  %dk = linalg.batch_matmul ins(%ds_turned, %q : !qkv, !qkv) outs(%zero : !qkv) -> !qkv loc("saved.dk")
  return %dq, %dk, %dv : !qkv, !qkv, !qkv
}

// The same of exponentials and their sums, which a forward has kept in place of shares: their quotient comes first.
// CHECK: kept.dv: high precision; role attention.dv,
// CHECK: kept.dp: high precision; role attention.dp,
// CHECK: kept.dq: high precision; role attention.dq,
// CHECK: kept.dk: high precision; role attention.dk,
// GIVEN: kept.dv: fp8; role attention.dv, {{.*}} a f8E4M3FN[*x*]f32, b f8E5M2[*x*]f32
// GIVEN: kept.dp: fp8; role attention.dp, {{.*}} a f8E5M2[*x*]f32, b f8E4M3FN[*x*]f32
// GIVEN: kept.dq: fp8; role attention.dq, {{.*}} a f8E5M2[*x*]f32, b f8E4M3FN[*x*]f32
// GIVEN: kept.dk: fp8; role attention.dk, {{.*}} a f8E5M2[*x*]f32, b f8E4M3FN[*x*]f32
func.func @kept(%e: !qkv, %sums: !row, %q: !qkv, %k: !qkv, %v: !qkv, %grad: !qkv, %zero: !qkv, %none: !row) -> (!qkv, !qkv, !qkv) {
  %wide_sums = linalg.broadcast ins(%sums : !row) outs(%zero : !qkv) dimensions = [2]
  %p = linalg.div ins(%e, %wide_sums : !qkv, !qkv) outs(%zero : !qkv) -> !qkv
  %turned = linalg.transpose ins(%p : !qkv) outs(%zero : !qkv) permutation = [0, 2, 1]
  %dv = linalg.batch_matmul ins(%turned, %grad : !qkv, !qkv) outs(%zero : !qkv) -> !qkv loc("kept.dv")
  %dp = linalg.batch_matmul indexing_maps = [affine_map<(b, m, n, k) -> (b, m, k)>, affine_map<(b, m, n, k) -> (b, n, k)>, affine_map<(b, m, n, k) -> (b, m, n)>]
      ins(%grad, %v : !qkv, !qkv) outs(%zero : !qkv) -> !qkv loc("kept.dp")
  %products = linalg.mul ins(%dp, %p : !qkv, !qkv) outs(%zero : !qkv) -> !qkv
  %delta = linalg.reduce ins(%products : !qkv) outs(%none : !row) dimensions = [2] (%in: f32, %acc: f32) {
    %a = arith.addf %in, %acc : f32
    linalg.yield %a : f32
  }
  %wide_delta = linalg.broadcast ins(%delta : !row) outs(%zero : !qkv) dimensions = [2]
  %lost = linalg.mul ins(%p, %wide_delta : !qkv, !qkv) outs(%zero : !qkv) -> !qkv
  %ds = linalg.sub ins(%products, %lost : !qkv, !qkv) outs(%zero : !qkv) -> !qkv
  %dq = linalg.batch_matmul ins(%ds, %k : !qkv, !qkv) outs(%zero : !qkv) -> !qkv loc("kept.dq")
  %ds_turned = linalg.transpose ins(%ds : !qkv) outs(%zero : !qkv) permutation = [0, 2, 1]
  %dk = linalg.batch_matmul ins(%ds_turned, %q : !qkv, !qkv) outs(%zero : !qkv) -> !qkv loc("kept.dk")
  return %dq, %dk, %dv : !qkv, !qkv, !qkv
}

// No attention: the gradient of a norm, whose input was kept, is of a layer's gradient.
// CHECK: norm.dx: fp8; role fprop,
// CHECK: norm.dw: fp8; role fprop,
func.func @norm(%x: !qkv, %w: !qkv {fp8.weight}, %grad: !qkv, %zero: !qkv, %none: !row) -> (!qkv, !qkv) {
  %dy = linalg.batch_matmul ins(%grad, %w : !qkv, !qkv) outs(%zero : !qkv) -> !qkv loc("norm.dx")
  %products = linalg.mul ins(%dy, %x : !qkv, !qkv) outs(%zero : !qkv) -> !qkv
  %sum = linalg.reduce ins(%products : !qkv) outs(%none : !row) dimensions = [2] (%in: f32, %acc: f32) {
    %a = arith.addf %in, %acc : f32
    linalg.yield %a : f32
  }
  %wide = linalg.broadcast ins(%sum : !row) outs(%zero : !qkv) dimensions = [2]
  %lost = linalg.mul ins(%x, %wide : !qkv, !qkv) outs(%zero : !qkv) -> !qkv
  %dx = linalg.sub ins(%dy, %lost : !qkv, !qkv) outs(%zero : !qkv) -> !qkv
  %turned = linalg.transpose ins(%dx : !qkv) outs(%zero : !qkv) permutation = [0, 2, 1]
  %dw = linalg.batch_matmul ins(%turned, %grad : !qkv, !qkv) outs(%zero : !qkv) -> !qkv loc("norm.dw")
  return %dx, %dw : !qkv, !qkv
}

// A learned query, of keys and values that layers project, as Perceiver has them.
// CHECK: latent.keys: fp8; role fprop,
// CHECK: latent.values: fp8; role fprop,
// CHECK: latent.scores: high precision; role attention.qk,
// CHECK: latent.sum: high precision; role attention.pv,
// GIVEN: latent.scores: fp8; role attention.qk, {{.*}} recipe current,
!latents = tensor<32x64xf32>
!some = tensor<32x128xf32>
!x = tensor<128x64xf32>
#m = affine_map<(m, n, k) -> (m, k)>
#n = affine_map<(m, n, k) -> (n, k)>
#mn = affine_map<(m, n, k) -> (m, n)>
func.func @latent(%latents: !latents {fp8.weight}, %x: !x, %wk: !t {fp8.weight}, %wv: !t {fp8.weight}, %zero: !some, %zero_x: !x, %zero_y: !latents) -> !latents {
  %k = linalg.matmul ins(%x, %wk : !x, !t) outs(%zero_x : !x) -> !x loc("latent.keys")
  %v = linalg.matmul ins(%x, %wv : !x, !t) outs(%zero_x : !x) -> !x loc("latent.values")
  %s = linalg.matmul indexing_maps = [#m, #n, #mn] ins(%latents, %k : !latents, !x) outs(%zero : !some) -> !some loc("latent.scores")
  %p = linalg.softmax dimension(1) ins(%s : !some) outs(%zero : !some) -> !some
  %y = linalg.matmul ins(%p, %v : !some, !x) outs(%zero_y : !latents) -> !latents loc("latent.sum")
  return %y : !latents
}

// No attention: experts are the weight's rows, also where a layer is before it.
// CHECK: deep_router.gate: fp8; role fprop,
// CHECK: deep_router.mix: fp8; role fprop,
func.func @deep_router(%x: !x, %w: !t {fp8.weight}, %gate: !latents {fp8.weight}, %experts: !latents, %zero: !some, %zero_x: !x) -> !x {
  %h = linalg.matmul ins(%x, %w : !x, !t) outs(%zero_x : !x) -> !x loc("deep_router.up")
  %empty = tensor.empty() : tensor<128x32xf32>
  %s = linalg.matmul indexing_maps = [#m, #n, #mn] ins(%h, %gate : !x, !latents) outs(%empty : tensor<128x32xf32>) -> tensor<128x32xf32> loc("deep_router.gate")
  %p = linalg.softmax dimension(1) ins(%s : tensor<128x32xf32>) outs(%empty : tensor<128x32xf32>) -> tensor<128x32xf32>
  %y = linalg.matmul ins(%p, %experts : tensor<128x32xf32>, !latents) outs(%zero_x : !x) -> !x loc("deep_router.mix")
  return %y : !x
}
