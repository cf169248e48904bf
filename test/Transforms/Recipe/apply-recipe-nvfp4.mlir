// RUN: fp8-opt %s --fp8-apply-recipe=recipe=nvfp4 | FileCheck %s --check-prefixes=CHECK,ROW
// RUN: fp8-opt %s --fp8-apply-recipe=recipe=nvfp4,weight_2d=true | FileCheck %s --check-prefixes=CHECK,TILE

// 16 elements of K share an E4M3 factor, all share one in f32.

// CHECK-LABEL: func.func @fprop
// CHECK: -> <32x64xf4E2M1FN, block = [1, 16], scale = f8E4M3FN, tensor_scale = f32>
// ROW: -> <16x64xf4E2M1FN, block = [1, 16], scale = f8E4M3FN, tensor_scale = f32>
// TILE: -> <16x64xf4E2M1FN, block = [16, 16], scale = f8E4M3FN, tensor_scale = f32>
func.func @fprop(%x: tensor<32x64xbf16>, %w: tensor<64x16xbf16>, %c: tensor<32x16xf32>) -> tensor<32x16xf32> {
  %0 = linalg.matmul ins(%x, %w : tensor<32x64xbf16>, tensor<64x16xbf16>) outs(%c : tensor<32x16xf32>) -> tensor<32x16xf32>
  return %0 : tensor<32x16xf32>
}

// Gradients too are E2M1.
// CHECK-LABEL: func.func @dgrad
// CHECK: -> <32x64xf4E2M1FN, block = [1, 16]
func.func @dgrad(%dy: tensor<32x64xbf16> {fp8.grad}, %w: tensor<64x16xbf16> {fp8.weight}, %c: tensor<32x16xf32>) -> tensor<32x16xf32> {
  %0 = linalg.matmul ins(%dy, %w : tensor<32x64xbf16>, tensor<64x16xbf16>) outs(%c : tensor<32x16xf32>) -> tensor<32x16xf32>
  return %0 : tensor<32x16xf32>
}
