// RUN: fp8-opt %s --fp8-form-plain-matmul=tf32 | FileCheck %s --implicit-check-not=fp8.matmul

// No tensor core multiplies these: they stay what they are.

// CHECK-LABEL: func.func @two_types
// CHECK:       linalg.matmul
func.func @two_types(%a: tensor<4x8xbf16>, %b: tensor<8x4xf16>, %c: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = linalg.matmul ins(%a, %b : tensor<4x8xbf16>, tensor<8x4xf16>) outs(%c : tensor<4x4xf32>) -> tensor<4x4xf32>
  return %0 : tensor<4x4xf32>
}

// CHECK-LABEL: func.func @integers
// CHECK:       linalg.matmul
func.func @integers(%a: tensor<4x8xi8>, %b: tensor<8x4xi8>, %c: tensor<4x4xi32>) -> tensor<4x4xi32> {
  %0 = linalg.matmul ins(%a, %b : tensor<4x8xi8>, tensor<8x4xi8>) outs(%c : tensor<4x4xi32>) -> tensor<4x4xi32>
  return %0 : tensor<4x4xi32>
}

// CHECK-LABEL: func.func @f64
// CHECK:       linalg.matmul
func.func @f64(%a: tensor<4x8xf64>, %b: tensor<8x4xf64>, %c: tensor<4x4xf64>) -> tensor<4x4xf64> {
  %0 = linalg.matmul ins(%a, %b : tensor<4x8xf64>, tensor<8x4xf64>) outs(%c : tensor<4x4xf64>) -> tensor<4x4xf64>
  return %0 : tensor<4x4xf64>
}

// What widens must do nothing else.

#id = affine_map<(i, j) -> (i, j)>

// CHECK-LABEL: func.func @scaled_on_the_way
// CHECK:       %[[WIDE:.+]] = linalg.generic
// CHECK:       fp8.matmul %[[WIDE]], %{{.*}} accumulate = fast : tensor<4x8xf32>, tensor<4x8xf32>
func.func @scaled_on_the_way(%a: tensor<4x8xbf16>, %b: tensor<8x4xf32>, %empty: tensor<4x8xf32>, %c: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %two = arith.constant 2.0 : f32
  %wide = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%a : tensor<4x8xbf16>) outs(%empty : tensor<4x8xf32>) {
  ^bb0(%x: bf16, %y: f32):
    %w = arith.extf %x : bf16 to f32
    %s = arith.mulf %w, %two : f32
    linalg.yield %s : f32
  } -> tensor<4x8xf32>
  %0 = linalg.matmul ins(%wide, %b : tensor<4x8xf32>, tensor<8x4xf32>) outs(%c : tensor<4x4xf32>) -> tensor<4x4xf32>
  return %0 : tensor<4x4xf32>
}
