// RUN: fp8-opt %s --fp8-annotate-gemms --split-input-file --allow-unregistered-dialect | FileCheck %s

// Names come from the innermost name of the location, then from the position;
// they are unique, and what the user named stays.
// CHECK-LABEL: func.func @names
func.func @names(%x: tensor<4x8xf32>, %w: tensor<8x4xf32>, %c: tensor<4x4xf32>) -> tensor<4x4xf32> {
  // CHECK: fp8.name = "fc1"
  %0 = linalg.matmul ins(%x, %w : tensor<4x8xf32>, tensor<8x4xf32>) outs(%c : tensor<4x4xf32>) -> tensor<4x4xf32> loc("fc1")
  // CHECK: fp8.name = "fc1_1"
  %1 = linalg.matmul ins(%x, %w : tensor<4x8xf32>, tensor<8x4xf32>) outs(%0 : tensor<4x4xf32>) -> tensor<4x4xf32> loc("fc1"("model.py":7:3))
  // CHECK: fp8.name = "fc2"
  %2 = linalg.matmul ins(%x, %w : tensor<4x8xf32>, tensor<8x4xf32>) outs(%1 : tensor<4x4xf32>) -> tensor<4x4xf32> loc(fused["model.py":1:2, "fc2"("model.py":3:4)])
  // CHECK: fp8.name = "fc3"
  %3 = linalg.matmul ins(%x, %w : tensor<4x8xf32>, tensor<8x4xf32>) outs(%2 : tensor<4x4xf32>) -> tensor<4x4xf32> loc(callsite("fc3" at "model.py":9:1))
  // CHECK: fp8.name = "names.matmul_4"
  %4 = linalg.matmul ins(%x, %w : tensor<4x8xf32>, tensor<8x4xf32>) outs(%3 : tensor<4x4xf32>) -> tensor<4x4xf32>
  // CHECK: fp8.name = "names.matmul_6"
  %5 = linalg.matmul {fp8.name = "names.matmul_6"} ins(%x, %w : tensor<4x8xf32>, tensor<8x4xf32>) outs(%4 : tensor<4x4xf32>) -> tensor<4x4xf32>
  // CHECK: fp8.name = "names.matmul_6_1"
  %6 = linalg.matmul ins(%x, %w : tensor<4x8xf32>, tensor<8x4xf32>) outs(%5 : tensor<4x4xf32>) -> tensor<4x4xf32>
  return %6 : tensor<4x4xf32>
}

// -----

// Unique in the module, not in the function.
// CHECK-LABEL: func.func @first
// CHECK: fp8.name = "head"
func.func @first(%x: tensor<4x8xf32>, %w: tensor<8x4xf32>, %c: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = linalg.matmul ins(%x, %w : tensor<4x8xf32>, tensor<8x4xf32>) outs(%c : tensor<4x4xf32>) -> tensor<4x4xf32> loc("head")
  return %0 : tensor<4x4xf32>
}
// CHECK-LABEL: func.func @second
// CHECK: fp8.name = "head_1"
func.func @second(%x: tensor<4x8xf32>, %w: tensor<8x4xf32>, %c: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = linalg.matmul ins(%x, %w : tensor<4x8xf32>, tensor<8x4xf32>) outs(%c : tensor<4x4xf32>) -> tensor<4x4xf32> loc("head")
  return %0 : tensor<4x4xf32>
}

// -----

// A contraction within control flow.
// CHECK-LABEL: func.func @nested
// CHECK: fp8.name = "nested.matmul_0", fp8.role = #fp8.role<fprop>
func.func @nested(%n: index, %x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%s = %x) -> tensor<4x4xf32> {
    %0 = linalg.matmul ins(%s, %s : tensor<4x4xf32>, tensor<4x4xf32>) outs(%s : tensor<4x4xf32>) -> tensor<4x4xf32>
    scf.yield %0 : tensor<4x4xf32>
  }
  return %r : tensor<4x4xf32>
}
