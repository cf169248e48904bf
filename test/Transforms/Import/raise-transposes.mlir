// RUN: fp8-opt %s --fp8-raise-transposes | FileCheck %s

#same = affine_map<(d0, d1) -> (d0, d1)>
#turned = affine_map<(d0, d1) -> (d1, d0)>
#one = affine_map<(d0, d1, d2) -> (d1, d2, d0)>
#other = affine_map<(d0, d1, d2) -> (d1, d0, d2)>
#row = affine_map<(d0, d1) -> (d1)>

// Read in another order; its name stays.
// CHECK-LABEL: func.func @read
// CHECK: linalg.transpose ins(%arg0 : tensor<?x8xbf16>) outs(%arg1 : tensor<8x?xbf16>) permutation = [1, 0] {fp8.name = "x"}
func.func @read(%x: tensor<?x8xbf16>, %e: tensor<8x?xbf16>) -> tensor<8x?xbf16> {
  %0 = linalg.generic {indexing_maps = [#turned, #same], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<?x8xbf16>) outs(%e : tensor<8x?xbf16>) attrs = {fp8.name = "x"} {
  ^bb0(%in: bf16, %out: bf16):
    linalg.yield %in : bf16
  } -> tensor<8x?xbf16>
  return %0 : tensor<8x?xbf16>
}

// Loops in any order: dimension 1 of the result is that of the input with loop d0, its last.
// CHECK-LABEL: func.func @both
// CHECK: linalg.transpose {{.*}} permutation = [0, 2, 1]
func.func @both(%x: tensor<2x3x4xf32>, %e: tensor<2x4x3xf32>) -> tensor<2x4x3xf32> {
  %0 = linalg.generic {indexing_maps = [#one, #other], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x : tensor<2x3x4xf32>) outs(%e : tensor<2x4x3xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<2x4x3xf32>
  return %0 : tensor<2x4x3xf32>
}

// Two that undo each other, and a copy in the same order.
// CHECK-LABEL: func.func @none
// CHECK-NEXT: return %arg0, %arg0
func.func @none(%x: tensor<4x8xf32>, %e: tensor<8x4xf32>, %f: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>) {
  %0 = linalg.generic {indexing_maps = [#turned, #same], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<4x8xf32>) outs(%e : tensor<8x4xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<8x4xf32>
  %1 = linalg.generic {indexing_maps = [#same, #turned], iterator_types = ["parallel", "parallel"]}
      ins(%0 : tensor<8x4xf32>) outs(%f : tensor<4x8xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<4x8xf32>
  %2 = linalg.generic {indexing_maps = [#same, #same], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<4x8xf32>) outs(%f : tensor<4x8xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<4x8xf32>
  return %1, %2 : tensor<4x8xf32>, tensor<4x8xf32>
}

// What is broadcast, computed or read from the result stays.
// CHECK-LABEL: func.func @others
// CHECK-COUNT-3: linalg.generic
// CHECK-NOT: linalg.transpose
func.func @others(%x: tensor<4x4xf32>, %row: tensor<4xf32>, %e: tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>) {
  %0 = linalg.generic {indexing_maps = [#row, #same], iterator_types = ["parallel", "parallel"]}
      ins(%row : tensor<4xf32>) outs(%e : tensor<4x4xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<4x4xf32>
  %1 = linalg.generic {indexing_maps = [#turned, #same], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<4x4xf32>) outs(%e : tensor<4x4xf32>) {
  ^bb0(%in: f32, %out: f32):
    %s = arith.negf %in : f32
    linalg.yield %s : f32
  } -> tensor<4x4xf32>
  %2 = linalg.generic {indexing_maps = [#turned, #same], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<4x4xf32>) outs(%e : tensor<4x4xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %out : f32
  } -> tensor<4x4xf32>
  return %0, %1, %2 : tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>
}

// One of several dimensions, where it is moved as it is; what an elementwise operation reads it reads in any order, and extents
// that only one side knows are no transpose's.
// CHECK-LABEL: func.func @kept
// CHECK: linalg.transpose {{.*}} permutation = [0, 2, 1, 3]
// CHECK-COUNT-3: linalg.generic
// CHECK-NOT: linalg.transpose
#heads = affine_map<(d0, d1, d2, d3) -> (d0, d2, d1, d3)>
#all = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
func.func @kept(%x: tensor<2x4x8x16xf32>, %e: tensor<2x8x4x16xf32>, %y: tensor<?x8xf32>, %f: tensor<8x4xf32>) -> (tensor<2x8x4x16xf32>, tensor<2x8x4x16xf32>, tensor<8x4xf32>) {
  %0 = linalg.generic {indexing_maps = [#heads, #all], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%x : tensor<2x4x8x16xf32>) outs(%e : tensor<2x8x4x16xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<2x8x4x16xf32>
  %1 = linalg.generic {indexing_maps = [#heads, #all], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%x : tensor<2x4x8x16xf32>) outs(%e : tensor<2x8x4x16xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<2x8x4x16xf32>
  %2 = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%1 : tensor<2x8x4x16xf32>) outs(%e : tensor<2x8x4x16xf32>) {
  ^bb0(%in: f32, %out: f32):
    %n = arith.negf %in : f32
    linalg.yield %n : f32
  } -> tensor<2x8x4x16xf32>
  %3 = linalg.generic {indexing_maps = [#turned, #same], iterator_types = ["parallel", "parallel"]}
      ins(%y : tensor<?x8xf32>) outs(%f : tensor<8x4xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<8x4xf32>
  return %0, %2, %3 : tensor<2x8x4x16xf32>, tensor<2x8x4x16xf32>, tensor<8x4xf32>
}
