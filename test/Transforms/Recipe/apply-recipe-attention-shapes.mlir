// RUN: fp8-opt %s --fp8-annotate-gemms --fp8-apply-recipe=recipe=current --fp8-remarks=text:- -o /dev/null | FileCheck %s

// Exponentials of other shapes than the scores have.

!s = tensor<1x64x64xf32>
!wide = tensor<1x1x64x1x64xf32>
!row = tensor<1x1x64x1xf32>
!one = tensor<1x1x1xf32>

// One that nobody sums, beside one of more dimensions that is summed.
// CHECK: two.scores: high precision; role attention.qk,
// CHECK: two.values: high precision; role attention.pv,
// CHECK: turned.scores: high precision; role attention.qk,
// CHECK: turned.values: high precision; role attention.pv,
func.func @two(%q: !s, %k: !s, %v: !s, %zero: !s, %none: !row) -> (!s, !row) {
  %s = linalg.batch_matmul ins(%q, %k : !s, !s) outs(%zero : !s) -> !s loc("two.scores")
  %e = math.exp %s : !s
  %x = tensor.expand_shape %s [[0, 1], [2, 3], [4]] output_shape [1, 1, 64, 1, 64] : !s into !wide
  %e5 = math.exp %x : !wide
  %sum = linalg.reduce ins(%e5 : !wide) outs(%none : !row) dimensions = [4] (%in: f32, %acc: f32) {
    %a = arith.addf %in, %acc : f32
    linalg.yield %a : f32
  }
  %o = linalg.batch_matmul ins(%e, %v : !s, !s) outs(%zero : !s) -> !s loc("two.values")
  return %o, %sum : !s, !row
}
func.func @turned(%q: !s, %k: !s, %v: !s, %zero: !s, %none: !row) -> (!s, !row) {
  %s = linalg.batch_matmul ins(%q, %k : !s, !s) outs(%zero : !s) -> !s loc("turned.scores")
  %e = math.exp %s : !s
  %x = tensor.expand_shape %s [[0, 1], [2, 3], [4]] output_shape [1, 1, 64, 1, 64] : !s into !wide
  %e5 = math.exp %x : !wide
  %sum = linalg.reduce ins(%e5 : !wide) outs(%none : !row) dimensions = [4] (%in: f32, %acc: f32) {
    %a = arith.addf %in, %acc : f32
    linalg.yield %a : f32
  }
  %t = linalg.transpose ins(%e : !s) outs(%zero : !s) permutation = [0, 2, 1]
  %o = linalg.batch_matmul ins(%t, %v : !s, !s) outs(%zero : !s) -> !s loc("turned.values")
  return %o, %sum : !s, !row
}

// One of no dimensions, and one of nobody knows how many.
// CHECK: scalar.scores: fp8; role fprop,
// CHECK: scalar.values: fp8; role fprop,
// CHECK: unranked.scores: fp8; role fprop,
func.func @scalar(%q: tensor<1x1x64xf32>, %k: tensor<1x64x1xf32>, %v: tensor<64x64xf32>, %zero: !one, %out: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %s = linalg.batch_matmul ins(%q, %k : tensor<1x1x64xf32>, tensor<1x64x1xf32>) outs(%zero : !one) -> !one loc("scalar.scores")
  %e = math.exp %s : !one
  %c = tensor.collapse_shape %e [] : !one into tensor<f32>
  %b = linalg.broadcast ins(%c : tensor<f32>) outs(%out : tensor<64x64xf32>) dimensions = [0, 1]
  %o = linalg.matmul ins(%b, %v : tensor<64x64xf32>, tensor<64x64xf32>) outs(%out : tensor<64x64xf32>) -> tensor<64x64xf32> loc("scalar.values")
  return %o : tensor<64x64xf32>
}
func.func @unranked(%q: !s, %k: !s, %zero: !s) -> tensor<*xf32> {
  %s = linalg.batch_matmul ins(%q, %k : !s, !s) outs(%zero : !s) -> !s loc("unranked.scores")
  %u = tensor.cast %s : !s to tensor<*xf32>
  %e = math.exp %u : tensor<*xf32>
  return %e : tensor<*xf32>
}
