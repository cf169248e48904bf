// RUN: fp8-opt %s --fp8-fuse-elementwise --cse | FileCheck %s

#same = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
#unit = affine_map<(d0, d1) -> (d0, 0)>
#column = affine_map<(d0, d1) -> (d1)>

// Two users read the rows' numbers, of which nobody keeps the repeated ones.
// CHECK-LABEL: func.func @rows
// CHECK: linalg.generic {{.*}} ins(%arg0, %arg1 : tensor<?x64xf32>, tensor<?x1xf32>)
// CHECK: arith.mulf
// CHECK: linalg.generic {{.*}} ins(%arg0, %arg1 : tensor<?x64xf32>, tensor<?x1xf32>)
// CHECK: arith.addf
// CHECK-NOT: linalg.generic
func.func @rows(%x: tensor<?x64xf32>, %r: tensor<?x1xf32>, %e: tensor<?x64xf32>) -> (tensor<?x64xf32>, tensor<?x64xf32>) {
  %0 = linalg.generic {indexing_maps = [#unit, #same], iterator_types = ["parallel", "parallel"]}
      ins(%r : tensor<?x1xf32>) outs(%e : tensor<?x64xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<?x64xf32>
  %1 = linalg.mul ins(%x, %0 : tensor<?x64xf32>, tensor<?x64xf32>) outs(%e : tensor<?x64xf32>) -> tensor<?x64xf32>
  %2 = linalg.add ins(%x, %0 : tensor<?x64xf32>, tensor<?x64xf32>) outs(%e : tensor<?x64xf32>) -> tensor<?x64xf32>
  return %1, %2 : tensor<?x64xf32>, tensor<?x64xf32>
}

// A row's number times a column's becomes such of two.
// CHECK-LABEL: func.func @both
// CHECK: linalg.generic {{.*}} ins(%arg0, %arg1, %arg2 : tensor<32x64xf32>, tensor<32xf32>, tensor<64xf32>)
// CHECK: linalg.generic {{.*}} ins(%arg0, %arg1, %arg2 : tensor<32x64xf32>, tensor<32xf32>, tensor<64xf32>)
// CHECK-NOT: linalg.generic
func.func @both(%x: tensor<32x64xf32>, %r: tensor<32xf32>, %c: tensor<64xf32>, %e: tensor<32x64xf32>) -> (tensor<32x64xf32>, tensor<32x64xf32>) {
  %0 = linalg.generic {indexing_maps = [#row, #same], iterator_types = ["parallel", "parallel"]}
      ins(%r : tensor<32xf32>) outs(%e : tensor<32x64xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<32x64xf32>
  %1 = linalg.generic {indexing_maps = [#column, #same], iterator_types = ["parallel", "parallel"]}
      ins(%c : tensor<64xf32>) outs(%e : tensor<32x64xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<32x64xf32>
  %2 = linalg.mul ins(%0, %1 : tensor<32x64xf32>, tensor<32x64xf32>) outs(%e : tensor<32x64xf32>) -> tensor<32x64xf32>
  %3 = linalg.mul ins(%x, %2 : tensor<32x64xf32>, tensor<32x64xf32>) outs(%e : tensor<32x64xf32>) -> tensor<32x64xf32>
  %4 = linalg.add ins(%x, %2 : tensor<32x64xf32>, tensor<32x64xf32>) outs(%e : tensor<32x64xf32>) -> tensor<32x64xf32>
  return %3, %4 : tensor<32x64xf32>, tensor<32x64xf32>
}

// What costs more is computed once, and what a sum reads stays for both.
// CHECK-LABEL: func.func @others
// CHECK: math.exp
// CHECK: linalg.generic
// CHECK: linalg.generic
// CHECK: %[[REPEATED:.*]] = linalg.generic {{.*}} ins(%arg1 : tensor<32xf32>) outs({{.*}} : tensor<32x64xf32>)
// CHECK: linalg.reduce {{.*}}ins(%[[REPEATED]] : tensor<32x64xf32>)
func.func @others(%x: tensor<32x64xf32>, %r: tensor<32xf32>, %e: tensor<32x64xf32>, %s: tensor<32xf32>)
    -> (tensor<32x64xf32>, tensor<32x64xf32>, tensor<32xf32>, tensor<32x64xf32>) {
  %0 = linalg.generic {indexing_maps = [#row, #same], iterator_types = ["parallel", "parallel"]}
      ins(%r : tensor<32xf32>) outs(%e : tensor<32x64xf32>) {
  ^bb0(%in: f32, %out: f32):
    %y = math.exp %in : f32
    linalg.yield %y : f32
  } -> tensor<32x64xf32>
  %1 = linalg.mul ins(%x, %0 : tensor<32x64xf32>, tensor<32x64xf32>) outs(%e : tensor<32x64xf32>) -> tensor<32x64xf32>
  %2 = linalg.add ins(%x, %0 : tensor<32x64xf32>, tensor<32x64xf32>) outs(%e : tensor<32x64xf32>) -> tensor<32x64xf32>
  %3 = linalg.generic {indexing_maps = [#row, #same], iterator_types = ["parallel", "parallel"]}
      ins(%r : tensor<32xf32>) outs(%e : tensor<32x64xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<32x64xf32>
  %4 = linalg.reduce {arith.addf} ins(%3 : tensor<32x64xf32>) outs(%s : tensor<32xf32>) dimensions = [1]
  return %1, %2, %4, %3 : tensor<32x64xf32>, tensor<32x64xf32>, tensor<32xf32>, tensor<32x64xf32>
}
