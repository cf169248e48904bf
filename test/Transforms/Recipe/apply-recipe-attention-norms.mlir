// RUN: fp8-opt %s --fp8-annotate-gemms --fp8-apply-recipe=recipe=current --fp8-remarks=text:- -o /dev/null | FileCheck %s

// The gradient of a norm over what a forward has kept looks like that of a softmax: times, less a sum, times. It is a layer's.

!qkv = tensor<2x64x64xf32>
!row = tensor<2x64xf32>
!w = tensor<64x64xf32>

// Queries with a norm, as in Qwen3 and Gemma 3: a weight multiplies the gradient, too.
// CHECK: query.dp: high precision; role attention.dp,
// CHECK: query.dq: high precision; role attention.dq,
// CHECK: query.dw: fp8; role fprop,
// CHECK: query.dx: fp8; role fprop,
func.func @query(%raw: !qkv, %p: !qkv, %k: !qkv, %v: !qkv, %grad: !qkv, %x: !qkv, %wq: !w {fp8.weight}, %zero: !qkv, %zw: !w, %none: !row) -> (!w, !qkv) {
  %dp = linalg.batch_matmul indexing_maps = [affine_map<(b, m, n, k) -> (b, m, k)>, affine_map<(b, m, n, k) -> (b, n, k)>, affine_map<(b, m, n, k) -> (b, m, n)>]
      ins(%grad, %v : !qkv, !qkv) outs(%zero : !qkv) -> !qkv loc("query.dp")
  %ds_times = linalg.mul ins(%dp, %p : !qkv, !qkv) outs(%zero : !qkv) -> !qkv
  %ds_sum_row = linalg.reduce ins(%ds_times : !qkv) outs(%none : !row) dimensions = [2] (%in: f32, %acc: f32) {
    %a = arith.addf %in, %acc : f32
    linalg.yield %a : f32
  }
  %ds_sum = linalg.broadcast ins(%ds_sum_row : !row) outs(%zero : !qkv) dimensions = [2]
  %ds_lost = linalg.mul ins(%p, %ds_sum : !qkv, !qkv) outs(%zero : !qkv) -> !qkv
  %ds = linalg.sub ins(%ds_times, %ds_lost : !qkv, !qkv) outs(%zero : !qkv) -> !qkv
  %dqn = linalg.batch_matmul ins(%ds, %k : !qkv, !qkv) outs(%zero : !qkv) -> !qkv loc("query.dq")
  %dq_times = linalg.mul ins(%dqn, %raw : !qkv, !qkv) outs(%zero : !qkv) -> !qkv
  %dq_sum_row = linalg.reduce ins(%dq_times : !qkv) outs(%none : !row) dimensions = [2] (%in: f32, %acc: f32) {
    %a = arith.addf %in, %acc : f32
    linalg.yield %a : f32
  }
  %dq_sum = linalg.broadcast ins(%dq_sum_row : !row) outs(%zero : !qkv) dimensions = [2]
  %dq_lost = linalg.mul ins(%raw, %dq_sum : !qkv, !qkv) outs(%zero : !qkv) -> !qkv
  %dq = linalg.sub ins(%dqn, %dq_lost : !qkv, !qkv) outs(%zero : !qkv) -> !qkv
  %dw = linalg.generic {indexing_maps = [affine_map<(o, i, b, s) -> (b, s, o)>, affine_map<(o, i, b, s) -> (b, s, i)>, affine_map<(o, i, b, s) -> (o, i)>], iterator_types = ["parallel", "parallel", "reduction", "reduction"]}
      ins(%dq, %x : !qkv, !qkv) outs(%zw : !w) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %m = arith.mulf %a, %b : f32
    %n = arith.addf %c, %m : f32
    linalg.yield %n : f32
  } -> !w loc("query.dw")
  %dx = linalg.generic {indexing_maps = [affine_map<(b, s, i, o) -> (b, s, o)>, affine_map<(b, s, i, o) -> (o, i)>, affine_map<(b, s, i, o) -> (b, s, i)>], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%dq, %wq : !qkv, !w) outs(%zero : !qkv) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %m = arith.mulf %a, %b : f32
    %n = arith.addf %c, %m : f32
    linalg.yield %n : f32
  } -> !qkv loc("query.dx")
  return %dw, %dx : !w, !qkv
}

// The first layer has no gradient of its input. Those of queries, keys and values are known by what they are computed of.
// CHECK: first.dv: high precision; role attention.dv,
// CHECK: first.dp: high precision; role attention.dp,
// CHECK: first.dq: high precision; role attention.dq,
// CHECK: first.dk: high precision; role attention.dk,
// CHECK: first.dwq: fp8; role fprop,
// CHECK: first.dwk: fp8; role fprop,
// CHECK: first.dwv: fp8; role fprop,
func.func @first(%raw_q: !qkv, %raw_k: !qkv, %raw_v: !qkv, %q: !qkv, %k: !qkv, %v: !qkv, %p: !qkv, %grad: !qkv, %x: !qkv, %zero: !qkv, %zw: !w, %none: !row) -> (!w, !w, !w) {
  %p_turned = linalg.transpose ins(%p : !qkv) outs(%zero : !qkv) permutation = [0, 2, 1]
  %dvn = linalg.batch_matmul ins(%p_turned, %grad : !qkv, !qkv) outs(%zero : !qkv) -> !qkv loc("first.dv")
  %dp = linalg.batch_matmul indexing_maps = [affine_map<(b, m, n, k) -> (b, m, k)>, affine_map<(b, m, n, k) -> (b, n, k)>, affine_map<(b, m, n, k) -> (b, m, n)>]
      ins(%grad, %v : !qkv, !qkv) outs(%zero : !qkv) -> !qkv loc("first.dp")
  %ds_times = linalg.mul ins(%dp, %p : !qkv, !qkv) outs(%zero : !qkv) -> !qkv
  %ds_sum_row = linalg.reduce ins(%ds_times : !qkv) outs(%none : !row) dimensions = [2] (%in: f32, %acc: f32) {
    %a = arith.addf %in, %acc : f32
    linalg.yield %a : f32
  }
  %ds_sum = linalg.broadcast ins(%ds_sum_row : !row) outs(%zero : !qkv) dimensions = [2]
  %ds_lost = linalg.mul ins(%p, %ds_sum : !qkv, !qkv) outs(%zero : !qkv) -> !qkv
  %ds = linalg.sub ins(%ds_times, %ds_lost : !qkv, !qkv) outs(%zero : !qkv) -> !qkv
  %dqn = linalg.batch_matmul ins(%ds, %k : !qkv, !qkv) outs(%zero : !qkv) -> !qkv loc("first.dq")
  %ds_turned = linalg.transpose ins(%ds : !qkv) outs(%zero : !qkv) permutation = [0, 2, 1]
  %dkn = linalg.batch_matmul ins(%ds_turned, %q : !qkv, !qkv) outs(%zero : !qkv) -> !qkv loc("first.dk")
  %dq_times = linalg.mul ins(%dqn, %raw_q : !qkv, !qkv) outs(%zero : !qkv) -> !qkv
  %dq_sum_row = linalg.reduce ins(%dq_times : !qkv) outs(%none : !row) dimensions = [2] (%in: f32, %acc: f32) {
    %a = arith.addf %in, %acc : f32
    linalg.yield %a : f32
  }
  %dq_sum = linalg.broadcast ins(%dq_sum_row : !row) outs(%zero : !qkv) dimensions = [2]
  %dq_lost = linalg.mul ins(%raw_q, %dq_sum : !qkv, !qkv) outs(%zero : !qkv) -> !qkv
  %dq = linalg.sub ins(%dqn, %dq_lost : !qkv, !qkv) outs(%zero : !qkv) -> !qkv
  %dk_times = linalg.mul ins(%dkn, %raw_k : !qkv, !qkv) outs(%zero : !qkv) -> !qkv
  %dk_sum_row = linalg.reduce ins(%dk_times : !qkv) outs(%none : !row) dimensions = [2] (%in: f32, %acc: f32) {
    %a = arith.addf %in, %acc : f32
    linalg.yield %a : f32
  }
  %dk_sum = linalg.broadcast ins(%dk_sum_row : !row) outs(%zero : !qkv) dimensions = [2]
  %dk_lost = linalg.mul ins(%raw_k, %dk_sum : !qkv, !qkv) outs(%zero : !qkv) -> !qkv
  %dk = linalg.sub ins(%dkn, %dk_lost : !qkv, !qkv) outs(%zero : !qkv) -> !qkv
  %dv_times = linalg.mul ins(%dvn, %raw_v : !qkv, !qkv) outs(%zero : !qkv) -> !qkv
  %dv_sum_row = linalg.reduce ins(%dv_times : !qkv) outs(%none : !row) dimensions = [2] (%in: f32, %acc: f32) {
    %a = arith.addf %in, %acc : f32
    linalg.yield %a : f32
  }
  %dv_sum = linalg.broadcast ins(%dv_sum_row : !row) outs(%zero : !qkv) dimensions = [2]
  %dv_lost = linalg.mul ins(%raw_v, %dv_sum : !qkv, !qkv) outs(%zero : !qkv) -> !qkv
  %dv = linalg.sub ins(%dvn, %dv_lost : !qkv, !qkv) outs(%zero : !qkv) -> !qkv
  %dwq = linalg.generic {indexing_maps = [affine_map<(o, i, b, s) -> (b, s, o)>, affine_map<(o, i, b, s) -> (b, s, i)>, affine_map<(o, i, b, s) -> (o, i)>], iterator_types = ["parallel", "parallel", "reduction", "reduction"]}
      ins(%dq, %x : !qkv, !qkv) outs(%zw : !w) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %m = arith.mulf %a, %b : f32
    %n = arith.addf %c, %m : f32
    linalg.yield %n : f32
  } -> !w loc("first.dwq")
  %dwk = linalg.generic {indexing_maps = [affine_map<(o, i, b, s) -> (b, s, o)>, affine_map<(o, i, b, s) -> (b, s, i)>, affine_map<(o, i, b, s) -> (o, i)>], iterator_types = ["parallel", "parallel", "reduction", "reduction"]}
      ins(%dk, %x : !qkv, !qkv) outs(%zw : !w) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %m = arith.mulf %a, %b : f32
    %n = arith.addf %c, %m : f32
    linalg.yield %n : f32
  } -> !w loc("first.dwk")
  %dwv = linalg.generic {indexing_maps = [affine_map<(o, i, b, s) -> (b, s, o)>, affine_map<(o, i, b, s) -> (b, s, i)>, affine_map<(o, i, b, s) -> (o, i)>], iterator_types = ["parallel", "parallel", "reduction", "reduction"]}
      ins(%dv, %x : !qkv, !qkv) outs(%zw : !w) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %m = arith.mulf %a, %b : f32
    %n = arith.addf %c, %m : f32
    linalg.yield %n : f32
  } -> !w loc("first.dwv")
  return %dwq, %dwk, %dwv : !w, !w, !w
}

// The same where shares are computed again.
// CHECK: again.qk: high precision; role attention.qk,
// CHECK: again.dp: high precision; role attention.dp,
// CHECK: again.dq: high precision; role attention.dq,
// CHECK: again.dw: fp8; role fprop,
func.func @again(%raw: !qkv, %q: !qkv, %k: !qkv, %v: !qkv, %grad: !qkv, %x: !qkv, %zero: !qkv, %zw: !w, %none: !row) -> !w {
  %s = linalg.batch_matmul indexing_maps = [affine_map<(b, m, n, k) -> (b, m, k)>, affine_map<(b, m, n, k) -> (b, n, k)>, affine_map<(b, m, n, k) -> (b, m, n)>]
      ins(%q, %k : !qkv, !qkv) outs(%zero : !qkv) -> !qkv loc("again.qk")
  %p = linalg.softmax dimension(2) ins(%s : !qkv) outs(%zero : !qkv) -> !qkv
  %p_turned = linalg.transpose ins(%p : !qkv) outs(%zero : !qkv) permutation = [0, 2, 1]
  %dv = linalg.batch_matmul ins(%p_turned, %grad : !qkv, !qkv) outs(%zero : !qkv) -> !qkv loc("again.dv")
  %dp = linalg.batch_matmul indexing_maps = [affine_map<(b, m, n, k) -> (b, m, k)>, affine_map<(b, m, n, k) -> (b, n, k)>, affine_map<(b, m, n, k) -> (b, m, n)>]
      ins(%grad, %v : !qkv, !qkv) outs(%zero : !qkv) -> !qkv loc("again.dp")
  %ds_times = linalg.mul ins(%dp, %p : !qkv, !qkv) outs(%zero : !qkv) -> !qkv
  %ds_sum_row = linalg.reduce ins(%ds_times : !qkv) outs(%none : !row) dimensions = [2] (%in: f32, %acc: f32) {
    %a = arith.addf %in, %acc : f32
    linalg.yield %a : f32
  }
  %ds_sum = linalg.broadcast ins(%ds_sum_row : !row) outs(%zero : !qkv) dimensions = [2]
  %ds_lost = linalg.mul ins(%p, %ds_sum : !qkv, !qkv) outs(%zero : !qkv) -> !qkv
  %ds = linalg.sub ins(%ds_times, %ds_lost : !qkv, !qkv) outs(%zero : !qkv) -> !qkv
  %dqn = linalg.batch_matmul ins(%ds, %k : !qkv, !qkv) outs(%zero : !qkv) -> !qkv loc("again.dq")
  %dq_times = linalg.mul ins(%dqn, %raw : !qkv, !qkv) outs(%zero : !qkv) -> !qkv
  %dq_sum_row = linalg.reduce ins(%dq_times : !qkv) outs(%none : !row) dimensions = [2] (%in: f32, %acc: f32) {
    %a = arith.addf %in, %acc : f32
    linalg.yield %a : f32
  }
  %dq_sum = linalg.broadcast ins(%dq_sum_row : !row) outs(%zero : !qkv) dimensions = [2]
  %dq_lost = linalg.mul ins(%raw, %dq_sum : !qkv, !qkv) outs(%zero : !qkv) -> !qkv
  %dq = linalg.sub ins(%dqn, %dq_lost : !qkv, !qkv) outs(%zero : !qkv) -> !qkv
  %dw = linalg.generic {indexing_maps = [affine_map<(o, i, b, s) -> (b, s, o)>, affine_map<(o, i, b, s) -> (b, s, i)>, affine_map<(o, i, b, s) -> (o, i)>], iterator_types = ["parallel", "parallel", "reduction", "reduction"]}
      ins(%dq, %x : !qkv, !qkv) outs(%zw : !w) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %m = arith.mulf %a, %b : f32
    %n = arith.addf %c, %m : f32
    linalg.yield %n : f32
  } -> !w loc("again.dw")
  return %dw : !w
}

// What chooses experts has shares, whose gradient a weight multiplies.
// CHECK: router.dp: fp8; role fprop,
// CHECK: router.dw: fp8; role fprop,
// CHECK: router.dx: fp8; role fprop,
func.func @router(%p: !qkv, %experts: !qkv, %grad: !qkv, %x: !qkv, %gate: !w {fp8.weight}, %zero: !qkv, %zw: !w, %none: !row) -> (!w, !qkv) {
  %dp = linalg.batch_matmul indexing_maps = [affine_map<(b, m, n, k) -> (b, m, k)>, affine_map<(b, m, n, k) -> (b, n, k)>, affine_map<(b, m, n, k) -> (b, m, n)>]
      ins(%grad, %experts : !qkv, !qkv) outs(%zero : !qkv) -> !qkv loc("router.dp")
  %ds_times = linalg.mul ins(%dp, %p : !qkv, !qkv) outs(%zero : !qkv) -> !qkv
  %ds_sum_row = linalg.reduce ins(%ds_times : !qkv) outs(%none : !row) dimensions = [2] (%in: f32, %acc: f32) {
    %a = arith.addf %in, %acc : f32
    linalg.yield %a : f32
  }
  %ds_sum = linalg.broadcast ins(%ds_sum_row : !row) outs(%zero : !qkv) dimensions = [2]
  %ds_lost = linalg.mul ins(%p, %ds_sum : !qkv, !qkv) outs(%zero : !qkv) -> !qkv
  %ds = linalg.sub ins(%ds_times, %ds_lost : !qkv, !qkv) outs(%zero : !qkv) -> !qkv
  %dw = linalg.generic {indexing_maps = [affine_map<(o, i, b, s) -> (b, s, o)>, affine_map<(o, i, b, s) -> (b, s, i)>, affine_map<(o, i, b, s) -> (o, i)>], iterator_types = ["parallel", "parallel", "reduction", "reduction"]}
      ins(%ds, %x : !qkv, !qkv) outs(%zw : !w) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %m = arith.mulf %a, %b : f32
    %n = arith.addf %c, %m : f32
    linalg.yield %n : f32
  } -> !w loc("router.dw")
  %dx = linalg.generic {indexing_maps = [affine_map<(b, s, i, o) -> (b, s, o)>, affine_map<(b, s, i, o) -> (o, i)>, affine_map<(b, s, i, o) -> (b, s, i)>], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%ds, %gate : !qkv, !w) outs(%zero : !qkv) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %m = arith.mulf %a, %b : f32
    %n = arith.addf %c, %m : f32
    linalg.yield %n : f32
  } -> !qkv loc("router.dx")
  return %dw, %dx : !w, !qkv
}
