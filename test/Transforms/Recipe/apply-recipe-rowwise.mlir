// RUN: fp8-opt %s --fp8-apply-recipe=recipe=rowwise | FileCheck %s
// RUN: fp8-opt %s --fp8-apply-recipe=recipe=rowwise,format=hybrid | FileCheck %s --check-prefix=HYBRID

// One scale for every row of A and of B, E4M3 everywhere by default.

// CHECK-LABEL: func.func @dgrad
// CHECK: fp8.quantize {{.*}} recipe(#fp8.rowwise) : {{.*}} -> <32x64xf8E4M3FN, block = [1, *], scale = f32>
// CHECK: fp8.quantize {{.*}} recipe(#fp8.rowwise) : {{.*}} -> <16x64xf8E4M3FN, block = [1, *], scale = f32>
// HYBRID-LABEL: func.func @dgrad
// HYBRID: -> <32x64xf8E5M2, block = [1, *], scale = f32>
// HYBRID: -> <16x64xf8E4M3FN, block = [1, *], scale = f32>
func.func @dgrad(%dy: tensor<32x64xbf16> {fp8.grad}, %w: tensor<64x16xbf16> {fp8.weight}, %c: tensor<32x16xf32>) -> tensor<32x16xf32> {
  %0 = linalg.matmul ins(%dy, %w : tensor<32x64xbf16>, tensor<64x16xbf16>) outs(%c : tensor<32x16xf32>) -> tensor<32x16xf32>
  return %0 : tensor<32x16xf32>
}

// A row of every batch.
// CHECK-LABEL: func.func @batched
// CHECK: -> <4x32x64xf8E4M3FN, block = [1, 1, *], scale = f32>
// CHECK: -> <4x16x64xf8E4M3FN, block = [1, 1, *], scale = f32>
func.func @batched(%a: tensor<4x32x64xf16>, %b: tensor<4x64x16xf16>, %c: tensor<4x32x16xf16>) -> tensor<4x32x16xf16> {
  %0 = linalg.batch_matmul ins(%a, %b : tensor<4x32x64xf16>, tensor<4x64x16xf16>) outs(%c : tensor<4x32x16xf16>) -> tensor<4x32x16xf16>
  return %0 : tensor<4x32x16xf16>
}
