// RUN: fp8-opt %s --fp8-apply-recipe=recipe=mxfp8,mode=floor | FileCheck %s --check-prefixes=CHECK,ROW
// RUN: fp8-opt %s --fp8-apply-recipe=recipe=mxfp8,weight_2d=true | FileCheck %s --check-prefixes=CHECK,TILE

// 32 elements of K share a power of two; with weight_2d, 32x32 of a weight.

// CHECK-LABEL: func.func @fprop
// ROW: recipe(#fp8.mxfp8<mode = floor>) : {{.*}} -> <32x64xf8E4M3FN, block = [1, 32], scale = f8E8M0FNU>
// ROW: -> <16x64xf8E4M3FN, block = [1, 32], scale = f8E8M0FNU>
// TILE: recipe(#fp8.mxfp8<weight_2d = true>) : {{.*}} -> <32x64xf8E4M3FN, block = [1, 32], scale = f8E8M0FNU>
// TILE: -> <16x64xf8E4M3FN, block = [32, 32], scale = f8E8M0FNU>
func.func @fprop(%x: tensor<32x64xbf16>, %w: tensor<64x16xbf16>, %c: tensor<32x16xf32>) -> tensor<32x16xf32> {
  %0 = linalg.matmul ins(%x, %w : tensor<32x64xbf16>, tensor<64x16xbf16>) outs(%c : tensor<32x16xf32>) -> tensor<32x16xf32>
  return %0 : tensor<32x16xf32>
}

// CHECK-LABEL: func.func @batched
// CHECK: -> <4x32x64xf8E4M3FN, block = [1, 1, 32], scale = f8E8M0FNU>
// CHECK: -> <4x16x64xf8E4M3FN, block = [1, 1, 32], scale = f8E8M0FNU>
func.func @batched(%a: tensor<4x32x64xf16>, %b: tensor<4x64x16xf16>, %c: tensor<4x32x16xf16>) -> tensor<4x32x16xf16> {
  %0 = linalg.batch_matmul ins(%a, %b : tensor<4x32x64xf16>, tensor<4x64x16xf16>) outs(%c : tensor<4x32x16xf16>) -> tensor<4x32x16xf16>
  return %0 : tensor<4x32x16xf16>
}
