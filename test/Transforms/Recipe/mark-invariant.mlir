// RUN: fp8-opt %s --fp8-mark-invariant | FileCheck %s
// RUN: fp8-opt %s --fp8-pipeline="recipe=rowwise invariant target=cpu to=import" | FileCheck %s
// RUN: fp8-opt %s --fp8-pipeline="recipe=rowwise target=cpu to=import" | FileCheck %s --check-prefix=FREE

// CHECK: module attributes {fp8.invariant} {
// FREE-NOT: fp8.invariant
func.func @linear(%x: tensor<32x256xbf16>, %w: tensor<256x64xbf16> {fp8.weight}) -> tensor<32x64xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<32x64xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<32x64xf32>) -> tensor<32x64xf32>
  %y = linalg.matmul ins(%x, %w : tensor<32x256xbf16>, tensor<256x64xbf16>) outs(%zeros : tensor<32x64xf32>) -> tensor<32x64xf32>
  return %y : tensor<32x64xf32>
}
