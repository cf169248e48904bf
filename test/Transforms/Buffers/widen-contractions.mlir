// RUN: fp8-opt %s --fp8-widen-contractions | FileCheck %s

// Operands and init extended, f32 sum, one rounding; transposes stay in the
// maps.
// CHECK-DAG: #[[A:.*]] = affine_map<(d0, d1, d2) -> (d0, d2)>
// CHECK-DAG: #[[B:.*]] = affine_map<(d0, d1, d2) -> (d1, d2)>
// CHECK-DAG: #[[C:.*]] = affine_map<(d0, d1, d2) -> (d0, d1)>
// CHECK-LABEL: func.func @bf16
// CHECK-COUNT-3: arith.extf %{{.*}} : bf16 to f32
// CHECK-NOT: linalg.transpose
// CHECK: linalg.contract indexing_maps = [#[[A]], #[[B]], #[[C]]] ins(%{{.*}} : tensor<4x8xf32>, tensor<6x8xf32>) outs(%{{.*}} : tensor<4x6xf32>)
// CHECK: arith.truncf %{{.*}} : f32 to bf16
func.func @bf16(%a: tensor<4x8xbf16>, %b: tensor<6x8xbf16>, %c: tensor<4x6xbf16>) -> tensor<4x6xbf16> {
  %0 = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>]
      ins(%a, %b : tensor<4x8xbf16>, tensor<6x8xbf16>) outs(%c : tensor<4x6xbf16>) -> tensor<4x6xbf16>
  return %0 : tensor<4x6xbf16>
}

// A zero init is zero in f32 without a cast.
// CHECK-LABEL: func.func @zero_init
// CHECK: %[[ZERO:.*]] = linalg.fill {{.*}} -> tensor<4x?xf32>
// CHECK: linalg.contract {{.*}} outs(%[[ZERO]] :
func.func @zero_init(%a: tensor<4x8xf16>, %b: tensor<8x?xf16>, %n: index) -> tensor<4x?xf16> {
  %z = arith.constant 0.0 : f16
  %e = tensor.empty(%n) : tensor<4x?xf16>
  %c = linalg.fill ins(%z : f16) outs(%e : tensor<4x?xf16>) -> tensor<4x?xf16>
  %0 = linalg.matmul ins(%a, %b : tensor<4x8xf16>, tensor<8x?xf16>) outs(%c : tensor<4x?xf16>) -> tensor<4x?xf16>
  return %0 : tensor<4x?xf16>
}

// CHECK-LABEL: func.func @f32_stays
// CHECK-NEXT: linalg.matmul
func.func @f32_stays(%a: tensor<4x8xf32>, %b: tensor<8x6xf32>, %c: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %0 = linalg.matmul ins(%a, %b : tensor<4x8xf32>, tensor<8x6xf32>) outs(%c : tensor<4x6xf32>) -> tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}

// Two loops of M and two of K become one each, the result gets them back.
// CHECK-LABEL: func.func @collapse
// CHECK: tensor.collapse_shape %arg0 {{\[}}[0, 1], [2, 3]] : tensor<2x3x4x5xf32> into tensor<6x20xf32>
// CHECK: linalg.contract {{.*}} -> tensor<6x7xf32>
// CHECK: tensor.expand_shape %{{.*}} {{\[}}[0, 1], [2]] output_shape [2, 3, 7]
func.func @collapse(%a: tensor<2x3x4x5xf32>, %b: tensor<7x4x5xf32>, %c: tensor<2x3x7xf32>) -> tensor<2x3x7xf32> {
  %0 = linalg.contract indexing_maps = [affine_map<(p, q, n, k, l) -> (p, q, k, l)>, affine_map<(p, q, n, k, l) -> (n, k, l)>, affine_map<(p, q, n, k, l) -> (p, q, n)>]
      ins(%a, %b : tensor<2x3x4x5xf32>, tensor<7x4x5xf32>) outs(%c : tensor<2x3x7xf32>) -> tensor<2x3x7xf32>
  return %0 : tensor<2x3x7xf32>
}

// Not of ours: integers and f64.
// CHECK-LABEL: func.func @other_types
// CHECK-NEXT: linalg.matmul
// CHECK-NEXT: linalg.matmul
func.func @other_types(%a: tensor<4x4xi8>, %c: tensor<4x4xi32>, %d: tensor<4x4xf64>) -> (tensor<4x4xi32>, tensor<4x4xf64>) {
  %0 = linalg.matmul ins(%a, %a : tensor<4x4xi8>, tensor<4x4xi8>) outs(%c : tensor<4x4xi32>) -> tensor<4x4xi32>
  %1 = linalg.matmul ins(%d, %d : tensor<4x4xf64>, tensor<4x4xf64>) outs(%d : tensor<4x4xf64>) -> tensor<4x4xf64>
  return %0, %1 : tensor<4x4xi32>, tensor<4x4xf64>
}
