// RUN: fp8-opt %s --fp8-fold-globals --fp8-annotate-gemms | FileCheck %s

// A contraction without a name is called after its weight: what is added in
// front of it does not rename it.

ml_program.global private @head(dense<1.0> : tensor<8x4xf32>) : tensor<8x4xf32>

// CHECK-LABEL: func.func @weights
func.func @weights(%x: tensor<8x8xf32> {fp8.name = "x"}, %w: tensor<8x8xf32> {fp8.name = "layers.0.up", fp8.weight},
                   %unnamed: tensor<8x8xf32> {fp8.weight}, %c: tensor<8x8xf32>, %d: tensor<8x4xf32>) -> tensor<8x4xf32> {
  // Also on the left, and through a transposed copy.
  // CHECK: fp8.name = "weights.layers.0.up"
  %e = tensor.empty() : tensor<8x8xf32>
  %t = linalg.transpose ins(%w : tensor<8x8xf32>) outs(%e : tensor<8x8xf32>) permutation = [1, 0]
  %0 = linalg.matmul ins(%t, %x : tensor<8x8xf32>, tensor<8x8xf32>) outs(%c : tensor<8x8xf32>) -> tensor<8x8xf32>
  // CHECK: fp8.name = "weights.layers.0.up_1"
  %1 = linalg.matmul ins(%0, %w : tensor<8x8xf32>, tensor<8x8xf32>) outs(%c : tensor<8x8xf32>) -> tensor<8x8xf32>
  // A location is nearer.
  // CHECK: fp8.name = "fc"
  %2 = linalg.matmul ins(%1, %w : tensor<8x8xf32>, tensor<8x8xf32>) outs(%c : tensor<8x8xf32>) -> tensor<8x8xf32> loc("fc")
  // CHECK: fp8.name = "weights.matmul_3"
  %3 = linalg.matmul ins(%2, %unnamed : tensor<8x8xf32>, tensor<8x8xf32>) outs(%c : tensor<8x8xf32>) -> tensor<8x8xf32>
  // CHECK: fp8.name = "weights.head"
  %head = ml_program.global_load_const @head : tensor<8x4xf32>
  %4 = linalg.matmul ins(%3, %head : tensor<8x8xf32>, tensor<8x4xf32>) outs(%d : tensor<8x4xf32>) -> tensor<8x4xf32>
  return %4 : tensor<8x4xf32>
}

// CHECK-LABEL: func.func @gradients
func.func @gradients(%x: tensor<8x8xf32> {fp8.name = "x"}, %dy: tensor<8x8xf32> {fp8.name = "dy", fp8.grad},
                     %w: tensor<8x8xf32> {fp8.name = "w", fp8.weight}, %c: tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>) {
  // CHECK: fp8.name = "gradients.w", fp8.role = #fp8.role<fprop>
  %0 = linalg.matmul ins(%x, %w : tensor<8x8xf32>, tensor<8x8xf32>) outs(%c : tensor<8x8xf32>) -> tensor<8x8xf32>
  // CHECK: fp8.name = "gradients.w.dgrad", fp8.role = #fp8.role<dgrad>
  %1 = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>] ins(%dy, %w : tensor<8x8xf32>, tensor<8x8xf32>) outs(%c : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %0, %1 : tensor<8x8xf32>, tensor<8x8xf32>
}
