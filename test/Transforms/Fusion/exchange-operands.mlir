// RUN: fp8-opt %s --fp8-exchange-operands | FileCheck %s

#mk = affine_map<(d0, d1, d2) -> (d0, d2)>
#nk = affine_map<(d0, d1, d2) -> (d1, d2)>
#mn = affine_map<(d0, d1, d2) -> (d0, d1)>
#same = affine_map<(d0, d1) -> (d0, d1)>

// CHECK-DAG: #[[A:.*]] = affine_map<(d0, d1, d2) -> (d0, d2)>
// CHECK-DAG: #[[B:.*]] = affine_map<(d0, d1, d2) -> (d1, d2)>
// CHECK-DAG: #[[OUT:.*]] = affine_map<(d0, d1, d2) -> (d0, d1)>
// CHECK-DAG: #[[PLAIN:.*]] = affine_map<(d0, d1, d2) -> (d2, d1)>
// CHECK-DAG: #[[YT:.*]] = affine_map<(d0, d1, d2) -> (d1, d0)>

// Canonical, with a cast between: A is B, and so are the kinds of operands.
// CHECK-LABEL: func.func @canonical
// CHECK: %[[INIT:.*]] = linalg.fill {{.*}} -> tensor<16x8xf32>
// CHECK: %[[Y:.*]] = linalg.contract indexing_maps = [#[[A]], #[[B]], #[[OUT]]] {fp8.name = "up.wgrad", fp8.operands = [#fp8.operand<activation>, #fp8.operand<gradient>]} ins(%arg1, %arg0 : tensor<16x?xf32>, tensor<8x?xf32>) outs(%[[INIT]] : tensor<16x8xf32>)
// CHECK: %[[CAST:.*]] = linalg.generic {{.*}} ins(%[[Y]] : tensor<16x8xf32>) outs(%{{.*}} : tensor<16x8xbf16>)
// CHECK-NOT: linalg.transpose
// CHECK: return %[[CAST]]
func.func @canonical(%a: tensor<8x?xf32>, %b: tensor<16x?xf32>) -> tensor<16x8xbf16> {
  %c0 = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8x16xf32>
  %init = linalg.fill ins(%c0 : f32) outs(%e : tensor<8x16xf32>) -> tensor<8x16xf32>
  %0 = linalg.contract indexing_maps = [#mk, #nk, #mn] {fp8.name = "up.wgrad", fp8.operands = [#fp8.operand<gradient>, #fp8.operand<activation>]}
      ins(%a, %b : tensor<8x?xf32>, tensor<16x?xf32>) outs(%init : tensor<8x16xf32>) -> tensor<8x16xf32>
  %f = tensor.empty() : tensor<8x16xbf16>
  %1 = linalg.generic {indexing_maps = [#same, #same], iterator_types = ["parallel", "parallel"]}
      ins(%0 : tensor<8x16xf32>) outs(%f : tensor<8x16xbf16>) {
  ^bb0(%in: f32, %out: bf16):
    %t = arith.truncf %in : f32 to bf16
    linalg.yield %t : bf16
  } -> tensor<8x16xbf16>
  %g = tensor.empty() : tensor<16x8xbf16>
  %2 = linalg.transpose ins(%1 : tensor<8x16xbf16>) outs(%g : tensor<16x8xbf16>) permutation = [1, 0]
  return %2 : tensor<16x8xbf16>
}

// Without a recipe: the map of the result is transposed.
// CHECK-LABEL: func.func @plain
// CHECK: linalg.contract indexing_maps = [#[[A]], #[[PLAIN]], #[[YT]]] {fp8.name = "head"} ins(%arg0, %arg1 : {{.*}} -> tensor<16x8xbf16>
// CHECK-NOT: linalg.transpose
func.func @plain(%a: tensor<8x4xbf16>, %b: tensor<4x16xbf16>) -> tensor<16x8xbf16> {
  %c0 = arith.constant 0.0 : bf16
  %e = tensor.empty() : tensor<8x16xbf16>
  %init = linalg.fill ins(%c0 : bf16) outs(%e : tensor<8x16xbf16>) -> tensor<8x16xbf16>
  %0 = linalg.matmul {fp8.name = "head"} ins(%a, %b : tensor<8x4xbf16>, tensor<4x16xbf16>) outs(%init : tensor<8x16xbf16>) -> tensor<8x16xbf16>
  %g = tensor.empty() : tensor<16x8xbf16>
  %1 = linalg.transpose ins(%0 : tensor<8x16xbf16>) outs(%g : tensor<16x8xbf16>) permutation = [1, 0]
  return %1 : tensor<16x8xbf16>
}

// Another reader, a sum that begins with something, and other dimensions.
// CHECK-LABEL: func.func @others
// CHECK-COUNT-3: linalg.transpose
func.func @others(%a: tensor<8x4xf32>, %b: tensor<4x16xf32>, %c: tensor<8x16xf32>, %d: tensor<2x8x4xf32>, %f: tensor<2x4x16xf32>)
    -> (tensor<8x16xf32>, tensor<16x8xf32>, tensor<16x8xf32>, tensor<8x2x16xf32>) {
  %c0 = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8x16xf32>
  %init = linalg.fill ins(%c0 : f32) outs(%e : tensor<8x16xf32>) -> tensor<8x16xf32>
  %0 = linalg.matmul ins(%a, %b : tensor<8x4xf32>, tensor<4x16xf32>) outs(%init : tensor<8x16xf32>) -> tensor<8x16xf32>
  %g = tensor.empty() : tensor<16x8xf32>
  %1 = linalg.transpose ins(%0 : tensor<8x16xf32>) outs(%g : tensor<16x8xf32>) permutation = [1, 0]
  %2 = linalg.matmul ins(%a, %b : tensor<8x4xf32>, tensor<4x16xf32>) outs(%c : tensor<8x16xf32>) -> tensor<8x16xf32>
  %3 = linalg.transpose ins(%2 : tensor<8x16xf32>) outs(%g : tensor<16x8xf32>) permutation = [1, 0]
  %h = tensor.empty() : tensor<2x8x16xf32>
  %zero = linalg.fill ins(%c0 : f32) outs(%h : tensor<2x8x16xf32>) -> tensor<2x8x16xf32>
  %4 = linalg.batch_matmul ins(%d, %f : tensor<2x8x4xf32>, tensor<2x4x16xf32>) outs(%zero : tensor<2x8x16xf32>) -> tensor<2x8x16xf32>
  %i = tensor.empty() : tensor<8x2x16xf32>
  %5 = linalg.transpose ins(%4 : tensor<2x8x16xf32>) outs(%i : tensor<8x2x16xf32>) permutation = [1, 0, 2]
  return %0, %1, %3, %5 : tensor<8x16xf32>, tensor<16x8xf32>, tensor<16x8xf32>, tensor<8x2x16xf32>
}

// What a loop reads is computed in front of it.
// CHECK-LABEL: func.func @outside
// CHECK: linalg.matmul
// CHECK: scf.for
// CHECK: linalg.transpose
func.func @outside(%a: tensor<8x4xf32>, %b: tensor<4x16xf32>, %n: index, %s: tensor<16x8xf32>) -> tensor<16x8xf32> {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %c0 = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8x16xf32>
  %init = linalg.fill ins(%c0 : f32) outs(%e : tensor<8x16xf32>) -> tensor<8x16xf32>
  %0 = linalg.matmul ins(%a, %b : tensor<8x4xf32>, tensor<4x16xf32>) outs(%init : tensor<8x16xf32>) -> tensor<8x16xf32>
  %r = scf.for %i = %zero to %n step %one iter_args(%sum = %s) -> tensor<16x8xf32> {
    %g = tensor.empty() : tensor<16x8xf32>
    %1 = linalg.transpose ins(%0 : tensor<8x16xf32>) outs(%g : tensor<16x8xf32>) permutation = [1, 0]
    %2 = linalg.add ins(%1, %sum : tensor<16x8xf32>, tensor<16x8xf32>) outs(%g : tensor<16x8xf32>) -> tensor<16x8xf32>
    scf.yield %2 : tensor<16x8xf32>
  }
  return %r : tensor<16x8xf32>
}
