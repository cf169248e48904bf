// RUN: fp8-opt %s --fp8-apply-recipe=recipe=current | FileCheck %s

// Under hybrid a gradient is E5M2, on whichever side it is.

!t = tensor<64x64xf32>

// CHECK-LABEL: func.func @gradient_second
// CHECK: fp8.quantize %arg0 {{.*}} -> <64x64xf8E4M3FN
// CHECK: fp8.quantize {{.*}} -> <64x64xf8E5M2
// CHECK: fp8.role = #fp8.role<dgrad>
func.func @gradient_second(%w: !t {fp8.weight}, %dy: !t {fp8.grad}, %c: !t) -> !t {
  %0 = linalg.matmul ins(%w, %dy : !t, !t) outs(%c : !t) -> !t
  return %0 : !t
}

// A role by hand says that A is the gradient if no argument is marked.
// CHECK-LABEL: func.func @by_hand
// CHECK: fp8.quantize %arg0 {{.*}} -> <64x64xf8E5M2
// CHECK: fp8.quantize {{.*}} -> <64x64xf8E4M3FN
// CHECK: fp8.role = #fp8.role<wgrad>
func.func @by_hand(%dy: !t, %x: !t, %c: !t) -> !t {
  %0 = linalg.matmul {fp8.role = #fp8.role<wgrad>} ins(%dy, %x : !t, !t) outs(%c : !t) -> !t
  return %0 : !t
}

// What is computed from a gradient, in attention.
// CHECK-LABEL: func.func @batched
// CHECK: fp8.quantize {{.*}} -> <2x64x64xf8E5M2, block = [*, *, *]
// CHECK: fp8.quantize {{.*}} -> <2x64x64xf8E4M3FN, block = [*, *, *]
func.func @batched(%dy: tensor<2x64x64xf32> {fp8.grad}, %v: tensor<2x64x64xf32>, %c: tensor<2x64x64xf32>) -> tensor<2x64x64xf32> {
  %d = math.tanh %dy : tensor<2x64x64xf32>
  %0 = linalg.batch_matmul ins(%d, %v : tensor<2x64x64xf32>, tensor<2x64x64xf32>) outs(%c : tensor<2x64x64xf32>) -> tensor<2x64x64xf32>
  return %0 : tensor<2x64x64xf32>
}

// Roles are of the function as it came: the second contraction sees that the
// first is a gradient after that has become FP8.
// CHECK-LABEL: func.func @chained
// CHECK-COUNT-2: fp8.role = #fp8.role<dgrad>
func.func @chained(%w: !t {fp8.weight}, %dy: !t {fp8.grad}, %c: !t) -> !t {
  %0 = linalg.matmul ins(%dy, %w : !t, !t) outs(%c : !t) -> !t
  %1 = linalg.matmul ins(%0, %w : !t, !t) outs(%c : !t) -> !t
  return %1 : !t
}
