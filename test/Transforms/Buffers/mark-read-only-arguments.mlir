// RUN: fp8-opt %s --fp8-mark-read-only-arguments | FileCheck %s
// RUN: fp8-opt %s --fp8-pipeline="from=buffers to=buffers" | FileCheck %s --check-prefix=BUFFERS

// Tensors of callers outside, of which nothing is said, are not written to.

// CHECK: func.func @accumulate(
// CHECK-SAME: tensor<4x4xf32> {bufferization.writable = false}
// CHECK-SAME: tensor<4x4xf32> {bufferization.writable = false, fp8.name = "c"}
// CHECK-SAME: %{{[a-z0-9]+}}: memref<4xf32>, %{{[a-z0-9]+}}: f32)
// BUFFERS-LABEL: func.func @accumulate(
// BUFFERS-SAME: %[[A:.*]]: memref<4x4xf32>, %[[C:.*]]: memref<4x4xf32> {fp8.name = "c"},
// BUFFERS: %[[ALLOC:.*]] = memref.alloc()
// BUFFERS: memref.copy %[[C]], %[[ALLOC]]
// BUFFERS: linalg.matmul {{.*}}outs(%[[ALLOC]] :
// BUFFERS-NOT: memref.copy
// BUFFERS: return %[[ALLOC]]
func.func @accumulate(%a: tensor<4x4xf32>, %c: tensor<4x4xf32> {fp8.name = "c"}, %m: memref<4xf32>, %s: f32) -> tensor<4x4xf32> {
  %0 = linalg.matmul ins(%a, %a : tensor<4x4xf32>, tensor<4x4xf32>) outs(%c : tensor<4x4xf32>) -> tensor<4x4xf32>
  return %0 : tensor<4x4xf32>
}

// CHECK: func.func @idle(%{{.*}}: tensor<4xf32>, %{{.*}}: tensor<4xf32> {bufferization.writable = false})
func.func @idle(%idle: tensor<4xf32>, %x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}

// CHECK: func.func @asked(%{{.*}}: tensor<4xf32> {bufferization.writable = true})
// BUFFERS-LABEL: func.func @asked(
// BUFFERS-SAME: %[[X:.*]]: memref<4xf32>
// BUFFERS: memref.store %{{.*}}, %[[X]]
func.func @asked(%x: tensor<4xf32> {bufferization.writable = true}) -> tensor<4xf32> {
  %zero = arith.constant 0 : index
  %one = arith.constant 1.0 : f32
  %0 = tensor.insert %one into %x[%zero] : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// CHECK: func.func private @inside(%{{.*}}: tensor<4xf32>) -> tensor<4xf32> {
func.func private @inside(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}

// CHECK: func.func private @outside(tensor<4xf32>){{$}}
func.func private @outside(tensor<4xf32>)
