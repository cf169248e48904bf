// RUN: fp8-opt %s --fp8-fuse-elementwise | FileCheck %s

!t = tensor<4x8xf32>
#id = affine_map<(i, j) -> (i, j)>

// CHECK-LABEL: func.func @named_chain
// CHECK-COUNT-1: linalg.generic
// CHECK: arith.addf
// CHECK: math.exp
// CHECK-NOT: linalg.{{generic|add|exp}}
func.func @named_chain(%x: !t, %bias: tensor<8xf32>) -> !t {
  %e = tensor.empty() : !t
  %b = linalg.broadcast ins(%bias : tensor<8xf32>) outs(%e : !t) dimensions = [0]
  %0 = linalg.add ins(%x, %b : !t, !t) outs(%e : !t) -> !t
  %1 = linalg.exp ins(%0 : !t) outs(%e : !t) -> !t
  return %1 : !t
}

// With two users a value is computed once and stored.
// CHECK-LABEL: func.func @two_users
// CHECK-COUNT-3: linalg.generic
// CHECK-NOT: linalg.generic
func.func @two_users(%x: !t) -> (!t, !t) {
  %e = tensor.empty() : !t
  %0 = linalg.exp ins(%x : !t) outs(%e : !t) -> !t
  %1 = linalg.negf ins(%0 : !t) outs(%e : !t) -> !t
  %2 = linalg.sqrt ins(%0 : !t) outs(%e : !t) -> !t
  return %1, %2 : !t, !t
}

// The exponential would be taken once for every column of the result.
// CHECK-LABEL: func.func @contraction
// CHECK: linalg.generic
// CHECK: math.exp
// CHECK: linalg.matmul
func.func @contraction(%x: !t, %w: tensor<8x4xf32>, %c: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %e = tensor.empty() : !t
  %0 = linalg.exp ins(%x : !t) outs(%e : !t) -> !t
  %1 = linalg.matmul ins(%0, %w : !t, tensor<8x4xf32>) outs(%c : tensor<4x4xf32>) -> tensor<4x4xf32>
  return %1 : tensor<4x4xf32>
}

// CHECK-LABEL: func.func @reduction
// CHECK-COUNT-2: linalg.generic
func.func @reduction(%x: !t, %c: tensor<4xf32>) -> tensor<4xf32> {
  %e = tensor.empty() : !t
  %0 = linalg.exp ins(%x : !t) outs(%e : !t) -> !t
  %1 = linalg.generic {indexing_maps = [#id, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]}
      ins(%0 : !t) outs(%c : tensor<4xf32>) {
  ^bb0(%a: f32, %sum: f32):
    %2 = arith.addf %a, %sum : f32
    linalg.yield %2 : f32
  } -> tensor<4xf32>
  return %1 : tensor<4xf32>
}

// Not into a loop.
// CHECK-LABEL: func.func @loop
// CHECK: math.exp
// CHECK: scf.for
// CHECK-NOT: math.exp
// CHECK: arith.addf
func.func @loop(%x: !t, %n: index) -> !t {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %e = tensor.empty() : !t
  %0 = linalg.exp ins(%x : !t) outs(%e : !t) -> !t
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%s = %x) -> !t {
    %1 = linalg.add ins(%s, %0 : !t, !t) outs(%e : !t) -> !t
    scf.yield %1 : !t
  }
  return %r : !t
}
