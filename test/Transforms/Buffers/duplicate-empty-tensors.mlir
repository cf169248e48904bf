// RUN: fp8-opt %s --fp8-duplicate-empty-tensors | FileCheck %s

// CHECK-LABEL: func.func @shared
// CHECK-NEXT: %[[A:.*]] = tensor.empty() : tensor<64xf32>
// CHECK-NEXT: %[[EXP:.*]] = linalg.exp ins(%arg0 : {{.*}}) outs(%[[A]]
// CHECK-NEXT: %[[B:.*]] = tensor.empty() : tensor<64xf32>
// CHECK-NEXT: linalg.abs ins(%[[EXP]] : {{.*}}) outs(%[[B]]
func.func @shared(%x: tensor<64xf32>) -> tensor<64xf32> {
  %e = tensor.empty() : tensor<64xf32>
  %0 = linalg.exp ins(%x : tensor<64xf32>) outs(%e : tensor<64xf32>) -> tensor<64xf32>
  %1 = linalg.abs ins(%0 : tensor<64xf32>) outs(%e : tensor<64xf32>) -> tensor<64xf32>
  return %1 : tensor<64xf32>
}

// One operation that writes two results has two places for them.
// CHECK-LABEL: func.func @two_results
// CHECK-DAG: %[[A:.*]] = tensor.empty(%arg1)
// CHECK-DAG: %[[B:.*]] = tensor.empty(%arg1)
// CHECK: linalg.generic {{.*}} outs(%[[B]], %[[A]] :
func.func @two_results(%x: tensor<?xf32>, %n: index) -> (tensor<?xf32>, tensor<?xf32>) {
  %e = tensor.empty(%n) : tensor<?xf32>
  %0:2 = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%x : tensor<?xf32>) outs(%e, %e : tensor<?xf32>, tensor<?xf32>) {
  ^bb0(%in: f32, %a: f32, %b: f32):
    linalg.yield %in, %in : f32, f32
  } -> (tensor<?xf32>, tensor<?xf32>)
  return %0#0, %0#1 : tensor<?xf32>, tensor<?xf32>
}

// What is allocated once is not allocated in every iteration.
// CHECK-LABEL: func.func @loop
// CHECK: %[[E:.*]] = tensor.empty() : tensor<64xf32>
// CHECK: scf.for
// CHECK-NOT: tensor.empty
// CHECK: linalg.exp {{.*}} outs(%[[E]] :
func.func @loop(%x: tensor<64xf32>, %n: index) -> tensor<64xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %e = tensor.empty() : tensor<64xf32>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%v = %x) -> tensor<64xf32> {
    %0 = linalg.exp ins(%v : tensor<64xf32>) outs(%e : tensor<64xf32>) -> tensor<64xf32>
    scf.yield %0 : tensor<64xf32>
  }
  return %r : tensor<64xf32>
}

// What is filled for one use is not copied for the next; who reads shares it.
// CHECK-LABEL: func.func @filled
// CHECK: %[[E:.*]] = tensor.empty() : tensor<8x8xf32>
// CHECK-NEXT: %[[ZEROS:.*]] = linalg.fill ins(%{{.*}}) outs(%[[E]]
// CHECK-NEXT: %[[A:.*]] = tensor.empty() : tensor<8x8xf32>
// CHECK-NEXT: %[[F:.*]] = linalg.fill ins(%{{.*}}) outs(%[[A]]
// CHECK-NEXT: %[[Y:.*]] = linalg.matmul {{.*}} outs(%[[F]]
// CHECK-NEXT: %[[B:.*]] = tensor.empty() : tensor<8x8xf32>
// CHECK-NEXT: %[[G:.*]] = linalg.fill ins(%{{.*}}) outs(%[[B]]
// CHECK-NEXT: linalg.matmul ins(%[[Y]], %[[ZEROS]] {{.*}} outs(%[[G]]
func.func @filled(%x: tensor<8x8xf32>, %w: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8x8xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<8x8xf32>) -> tensor<8x8xf32>
  %y = linalg.matmul ins(%x, %w : tensor<8x8xf32>, tensor<8x8xf32>) outs(%f : tensor<8x8xf32>) -> tensor<8x8xf32>
  %z = linalg.matmul ins(%y, %f : tensor<8x8xf32>, tensor<8x8xf32>) outs(%f : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %z : tensor<8x8xf32>
}
