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

// Rounding stays with the matmul, the rest of the chain is one.
// CHECK-LABEL: func.func @rounded_matmul
// CHECK: fp8.matmul
// CHECK: %[[GATE:.*]] = linalg.generic
// CHECK-NEXT: ^bb0
// CHECK-NEXT: arith.truncf
// CHECK-NEXT: linalg.yield
// CHECK: fp8.matmul
// CHECK: linalg.generic {{.*}} ins(%[[GATE]], %{{.*}} : tensor<32x16xbf16>, tensor<32x16xf32>)
// CHECK: math.exp
// CHECK: arith.mulf
// CHECK-NOT: linalg.generic
func.func @rounded_matmul(%a: tensor<32x64xbf16>, %b: tensor<16x64xbf16>) -> tensor<32x16xf32> {
  %gate = fp8.matmul %a, %b accumulate = fast : tensor<32x64xbf16>, tensor<16x64xbf16> -> tensor<32x16xf32>
  %e16 = tensor.empty() : tensor<32x16xbf16>
  %e = tensor.empty() : tensor<32x16xf32>
  %rounded = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%gate : tensor<32x16xf32>) outs(%e16 : tensor<32x16xbf16>) {
  ^bb0(%x: f32, %o: bf16):
    %0 = arith.truncf %x : f32 to bf16
    linalg.yield %0 : bf16
  } -> tensor<32x16xbf16>
  %exp = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%rounded : tensor<32x16xbf16>) outs(%e : tensor<32x16xf32>) {
  ^bb0(%x: bf16, %o: f32):
    %0 = arith.extf %x : bf16 to f32
    %1 = math.exp %0 : f32
    linalg.yield %1 : f32
  } -> tensor<32x16xf32>
  %up = fp8.matmul %a, %b accumulate = fast : tensor<32x64xbf16>, tensor<16x64xbf16> -> tensor<32x16xf32>
  %r = linalg.mul ins(%exp, %up : tensor<32x16xf32>, tensor<32x16xf32>) outs(%e : tensor<32x16xf32>) -> tensor<32x16xf32>
  return %r : tensor<32x16xf32>
}
