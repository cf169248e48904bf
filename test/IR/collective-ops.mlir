// RUN: fp8-opt %s --split-input-file | fp8-opt --split-input-file | FileCheck %s
// RUN: fp8-opt %s --split-input-file --canonicalize --cse | FileCheck %s --check-prefix=FOLD

// CHECK-LABEL: func @reduce
// CHECK: fp8.all_reduce_amax %{{.*}} group = "tp" : tensor<1x1xf32>
// CHECK: fp8.all_reduce_amax %{{.*}} group = "tp" size = 4 : tensor<?x6xf32>
// CHECK: fp8.all_reduce_amax %{{.*}} group = "a b" first_call : memref<?xf32>
// CHECK: fp8.all_reduce_amax %{{.*}} group = "tp" : memref<2xf32, strided<[1], offset: ?>>
func.func @reduce(%amax: tensor<1x1xf32>, %grid: tensor<?x6xf32>, %row: memref<?xf32>,
                  %part: memref<2xf32, strided<[1], offset: ?>>) -> (tensor<1x1xf32>, tensor<?x6xf32>) {
  %0 = fp8.all_reduce_amax %amax group = "tp" : tensor<1x1xf32>
  %1 = fp8.all_reduce_amax %grid group = "tp" size = 4 : tensor<?x6xf32>
  fp8.all_reduce_amax %row group = "a b" first_call : memref<?xf32>
  fp8.all_reduce_amax %part group = "tp" : memref<2xf32, strided<[1], offset: ?>>
  return %0, %1 : tensor<1x1xf32>, tensor<?x6xf32>
}

// -----

// CHECK-LABEL: func @state
// CHECK: fp8.all_reduce_state %{{.*}} group = "dp"{{$}}
// CHECK: fp8.all_reduce_state %{{.*}} group = "dp" first_call
func.func @state(%state: !fp8.state) {
  fp8.all_reduce_state %state group = "dp"
  fp8.all_reduce_state %state group = "dp" first_call
  return
}

// -----

// FOLD-LABEL: func @of_one
// FOLD-SAME: %[[AMAX:.*]]: tensor<1x1xf32>
// FOLD-NEXT: return %[[AMAX]]
func.func @of_one(%amax: tensor<1x1xf32>) -> tensor<1x1xf32> {
  %0 = fp8.all_reduce_amax %amax group = "tp" size = 1 : tensor<1x1xf32>
  return %0 : tensor<1x1xf32>
}

// -----

// FOLD-LABEL: func @of_reduced
// FOLD: %[[ONE:.*]] = fp8.all_reduce_amax %{{.*}} group = "tp"
// FOLD-NEXT: %[[TWO:.*]] = fp8.all_reduce_amax %[[ONE]] group = "dp"
// FOLD-NEXT: return %[[ONE]], %[[TWO]]
func.func @of_reduced(%amax: tensor<1x1xf32>) -> (tensor<1x1xf32>, tensor<1x1xf32>) {
  %0 = fp8.all_reduce_amax %amax group = "tp" : tensor<1x1xf32>
  %1 = fp8.all_reduce_amax %0 group = "tp" : tensor<1x1xf32>
  %2 = fp8.all_reduce_amax %0 group = "dp" : tensor<1x1xf32>
  return %1, %2 : tensor<1x1xf32>, tensor<1x1xf32>
}

// -----

// Ranks meet as often, and in the same order: none goes, and equal ones stay two.
// FOLD-LABEL: func @order
// FOLD: fp8.all_reduce_amax %{{.*}} group = "tp" : tensor<2xf32>
// FOLD-NEXT: fp8.all_reduce_amax %{{.*}} group = "tp" : tensor<1xf32>
// FOLD-NEXT: fp8.all_reduce_amax %{{.*}} group = "tp" : tensor<1xf32>
func.func @order(%x: tensor<1xf32>, %y: tensor<2xf32>) -> (tensor<1xf32>, tensor<1xf32>) {
  %0 = fp8.all_reduce_amax %y group = "tp" : tensor<2xf32>
  %1 = fp8.all_reduce_amax %x group = "tp" : tensor<1xf32>
  %2 = fp8.all_reduce_amax %x group = "tp" : tensor<1xf32>
  return %1, %2 : tensor<1xf32>, tensor<1xf32>
}
