// RUN: fp8-opt %s --fp8-annotate-gemms | FileCheck %s

!m = tensor<16x16xf32>

// y = x wT, dx = dy w, dw = dyT x, whichever operand comes first.
// CHECK-LABEL: func.func @linear
func.func @linear(%x: !m, %w: !m {fp8.weight}, %dy: !m {fp8.grad}, %c: !m) -> (!m, !m, !m, !m) {
  %h = math.tanh %x : !m
  // CHECK: fp8.role = #fp8.role<fprop>
  %y = linalg.matmul ins(%h, %w : !m, !m) outs(%c : !m) -> !m
  // CHECK: fp8.role = #fp8.role<dgrad>
  %dx = linalg.matmul ins(%dy, %w : !m, !m) outs(%c : !m) -> !m
  // CHECK: fp8.role = #fp8.role<dgrad>
  %dxt = linalg.matmul ins(%w, %dy : !m, !m) outs(%c : !m) -> !m
  // CHECK: fp8.role = #fp8.role<wgrad>
  %dw = linalg.matmul ins(%dy, %h : !m, !m) outs(%c : !m) -> !m
  return %y, %dx, %dxt, %dw : !m, !m, !m, !m
}

// An activation saved by the forward pass, an argument here, is no weight where
// weights are marked.
// CHECK-LABEL: func.func @saved
func.func @saved(%x: !m, %w: !m {fp8.weight}, %dy: !m {fp8.grad}, %c: !m) -> (!m, !m) {
  // CHECK: fp8.role = #fp8.role<dgrad>
  %dx = linalg.matmul ins(%dy, %w : !m, !m) outs(%c : !m) -> !m
  // CHECK: fp8.role = #fp8.role<wgrad>
  %dw = linalg.matmul ins(%dy, %x : !m, !m) outs(%c : !m) -> !m
  return %dx, %dw : !m, !m
}

// What is computed from a gradient is one, also around a loop.
// CHECK-LABEL: func.func @derived
func.func @derived(%w: !m {fp8.weight}, %dy: !m {fp8.grad}, %c: !m, %n: index) -> (!m, !m) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %d = arith.mulf %dy, %c : !m
  // CHECK: scf.for
  // CHECK: linalg.matmul {fp8.name = "derived.matmul_0", fp8.role = #fp8.role<dgrad>}
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%s = %c) -> !m {
    %0 = linalg.matmul ins(%s, %w : !m, !m) outs(%c : !m) -> !m
    %1 = arith.addf %0, %d : !m
    scf.yield %1 : !m
  }
  // CHECK: linalg.matmul {fp8.name = "derived.matmul_1", fp8.role = #fp8.role<dgrad>}
  %2 = linalg.matmul ins(%r, %w : !m, !m) outs(%c : !m) -> !m
  return %r, %2 : !m, !m
}

// A weight behind a cast and a transpose, and a constant.
// CHECK-LABEL: func.func @views
func.func @views(%w: tensor<16x16xbf16> {fp8.weight}, %dy: !m {fp8.grad}, %c: !m) -> (!m, !m) {
  %e = tensor.empty() : !m
  %wide = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j, i)>], iterator_types = ["parallel", "parallel"]}
      ins(%w : tensor<16x16xbf16>) outs(%e : !m) {
  ^bb0(%a: bf16, %o: f32):
    %0 = arith.extf %a : bf16 to f32
    linalg.yield %0 : f32
  } -> !m
  %t = linalg.transpose ins(%wide : !m) outs(%e : !m) permutation = [1, 0]
  // CHECK: linalg.matmul {{.*}}#fp8.role<dgrad>
  %0 = linalg.matmul ins(%dy, %t : !m, !m) outs(%c : !m) -> !m
  %k = arith.constant dense<1.0> : !m
  // CHECK: linalg.matmul {{.*}}#fp8.role<dgrad>
  %1 = linalg.matmul ins(%dy, %k : !m, !m) outs(%c : !m) -> !m
  return %0, %1 : !m, !m
}

// CHECK-LABEL: func.func @given
func.func @given(%x: !m, %w: !m) -> !m {
  // CHECK: linalg.matmul {fp8.name = "given.matmul_0", fp8.role = #fp8.role<wgrad>}
  %0 = linalg.matmul {fp8.role = #fp8.role<wgrad>} ins(%x, %w : !m, !m) outs(%x : !m) -> !m
  return %0 : !m
}
