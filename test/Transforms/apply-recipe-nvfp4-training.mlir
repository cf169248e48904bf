// RUN: fp8-opt %s --fp8-annotate-gemms --fp8-apply-recipe=recipe=nvfp4,stochastic_rounding=true,weight_2d=true | FileCheck %s --check-prefixes=CHECK,ROUND

// A quantize has what its operand is concerned of: gradients are rounded stochastically, weights have tiles.

// CHECK-LABEL: func.func @fprop
// ROUND: fp8.quantize %{{.*}} recipe(#fp8.nvfp4) : tensor<32x64xbf16>
// ROUND: fp8.quantize %{{.*}} recipe(#fp8.nvfp4<weight_2d = true>) : tensor<16x64xbf16>
// CHECK: linalg.contract
// ROUND-SAME: fp8.recipe = #fp8.nvfp4<weight_2d = true, stochastic_rounding = true>
func.func @fprop(%x: tensor<32x64xbf16>, %w: tensor<64x16xbf16> {fp8.weight}, %c: tensor<32x16xf32>) -> tensor<32x16xf32> {
  %0 = linalg.matmul ins(%x, %w : tensor<32x64xbf16>, tensor<64x16xbf16>) outs(%c : tensor<32x16xf32>) -> tensor<32x16xf32>
  return %0 : tensor<32x16xf32>
}

// CHECK-LABEL: func.func @dgrad
// ROUND: fp8.quantize %{{.*}} recipe(#fp8.nvfp4<stochastic_rounding = true>) : tensor<32x64xbf16>
// ROUND: fp8.quantize %{{.*}} recipe(#fp8.nvfp4<weight_2d = true>) : tensor<16x64xbf16>
// CHECK: linalg.contract
func.func @dgrad(%dy: tensor<32x64xbf16> {fp8.grad}, %w: tensor<64x16xbf16> {fp8.weight}, %c: tensor<32x16xf32>) -> tensor<32x16xf32> {
  %0 = linalg.matmul ins(%dy, %w : tensor<32x64xbf16>, tensor<64x16xbf16>) outs(%c : tensor<32x16xf32>) -> tensor<32x16xf32>
  return %0 : tensor<32x16xf32>
}

// Of a weight gradient one operand is a gradient.

// CHECK-LABEL: func.func @wgrad
// CHECK: %[[A:.*]] = tensor.pad
// CHECK: tensor<16x44xbf16> to tensor<16x48xbf16>
// ROUND: fp8.quantize %[[A]] recipe(#fp8.nvfp4<stochastic_rounding = true>) : tensor<16x48xbf16>
// CHECK: %[[B:.*]] = tensor.pad
// CHECK: tensor<64x44xbf16> to tensor<64x48xbf16>
// ROUND: fp8.quantize %[[B]] recipe(#fp8.nvfp4) : tensor<64x48xbf16>
func.func @wgrad(%dy: tensor<44x16xbf16> {fp8.grad}, %x: tensor<44x64xbf16>, %c: tensor<16x64xf32>) -> tensor<16x64xf32> {
  %0 = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
      {fp8.role = #fp8.role<wgrad>} ins(%dy, %x : tensor<44x16xbf16>, tensor<44x64xbf16>) outs(%c : tensor<16x64xf32>) -> tensor<16x64xf32>
  return %0 : tensor<16x64xf32>
}

// CHECK-LABEL: func.func @grouped
// ROUND: fp8.quantize %{{.*}} recipe(#fp8.nvfp4<stochastic_rounding = true>) : tensor<64x96xbf16>
func.func @grouped(%dy: tensor<96x64xbf16> {fp8.grad}, %x: tensor<96x256xbf16>, %offsets: tensor<5xi32>) -> tensor<4x64x256xf32> {
  %0 = fp8.grouped_matmul %dy, %x offsets(%offsets : tensor<5xi32>) transpose_a transpose_b accumulate = fast
      : tensor<96x64xbf16>, tensor<96x256xbf16> -> tensor<4x64x256xf32>
  return %0 : tensor<4x64x256xf32>
}
