// RUN: fp8-opt %s --fp8-annotate-gemms --fp8-apply-recipe=recipe=nvfp4,stochastic_rounding=true,weight_2d=true | FileCheck %s --check-prefixes=CHECK,ROUND
// RUN: fp8-opt %s --fp8-annotate-gemms --fp8-apply-recipe=recipe=nvfp4,hadamard=true | FileCheck %s --check-prefixes=CHECK,ROTATE
// RUN: fp8-opt %s --fp8-annotate-gemms --fp8-apply-recipe=recipe=nvfp4,hadamard=true -o /dev/null --fp8-remarks=text:- | FileCheck %s --check-prefix=REMARK

// A quantize has what its operand is concerned of: gradients are rounded stochastically, weights have tiles.

// CHECK-LABEL: func.func @fprop
// ROUND: fp8.quantize %{{.*}} recipe(#fp8.nvfp4) : tensor<32x64xbf16>
// ROUND: fp8.quantize %{{.*}} recipe(#fp8.nvfp4<weight_2d = true>) : tensor<16x64xbf16>
// ROTATE-NOT: fp8.hadamard
// CHECK: linalg.contract
// ROUND-SAME: fp8.recipe = #fp8.nvfp4<weight_2d = true, stochastic_rounding = true>
// ROTATE-SAME: fp8.recipe = #fp8.nvfp4<hadamard = true>
func.func @fprop(%x: tensor<32x64xbf16>, %w: tensor<64x16xbf16> {fp8.weight}, %c: tensor<32x16xf32>) -> tensor<32x16xf32> {
  %0 = linalg.matmul ins(%x, %w : tensor<32x64xbf16>, tensor<64x16xbf16>) outs(%c : tensor<32x16xf32>) -> tensor<32x16xf32>
  return %0 : tensor<32x16xf32>
}

// CHECK-LABEL: func.func @dgrad
// ROUND: fp8.quantize %{{.*}} recipe(#fp8.nvfp4<stochastic_rounding = true>) : tensor<32x64xbf16>
// ROUND: fp8.quantize %{{.*}} recipe(#fp8.nvfp4<weight_2d = true>) : tensor<16x64xbf16>
// ROTATE-NOT: fp8.hadamard
// CHECK: linalg.contract
func.func @dgrad(%dy: tensor<32x64xbf16> {fp8.grad}, %w: tensor<64x16xbf16> {fp8.weight}, %c: tensor<32x16xf32>) -> tensor<32x16xf32> {
  %0 = linalg.matmul ins(%dy, %w : tensor<32x64xbf16>, tensor<64x16xbf16>) outs(%c : tensor<32x16xf32>) -> tensor<32x16xf32>
  return %0 : tensor<32x16xf32>
}

// Operands of a weight gradient are rotated along the tokens, which zeros fill up before that.

// CHECK-LABEL: func.func @wgrad
// CHECK: %[[A:.*]] = tensor.pad
// CHECK: tensor<16x44xbf16> to tensor<16x48xbf16>
// ROUND: fp8.quantize %[[A]] recipe(#fp8.nvfp4<stochastic_rounding = true>) : tensor<16x48xbf16>
// ROTATE: %[[Y:.*]] = fp8.hadamard %[[A]] signs = 55272 : tensor<16x48xbf16>
// ROTATE: fp8.quantize %[[Y]] recipe(#fp8.nvfp4) : tensor<16x48xbf16>
// CHECK: %[[B:.*]] = tensor.pad
// CHECK: tensor<64x44xbf16> to tensor<64x48xbf16>
// ROUND: fp8.quantize %[[B]] recipe(#fp8.nvfp4) : tensor<64x48xbf16>
// ROTATE: %[[X:.*]] = fp8.hadamard %[[B]] signs = 55272 : tensor<64x48xbf16>
// ROTATE: fp8.quantize %[[X]] recipe(#fp8.nvfp4) : tensor<64x48xbf16>
func.func @wgrad(%dy: tensor<44x16xbf16> {fp8.grad}, %x: tensor<44x64xbf16>, %c: tensor<16x64xf32>) -> tensor<16x64xf32> {
  %0 = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
      {fp8.role = #fp8.role<wgrad>} ins(%dy, %x : tensor<44x16xbf16>, tensor<44x64xbf16>) outs(%c : tensor<16x64xf32>) -> tensor<16x64xf32>
  return %0 : tensor<16x64xf32>
}

// Groups of tokens begin within 16.

// CHECK-LABEL: func.func @grouped
// ROUND: fp8.quantize %{{.*}} recipe(#fp8.nvfp4<stochastic_rounding = true>) : tensor<64x96xbf16>
// ROTATE-NOT: fp8.quantize
// REMARK: grouped.grouped_matmul_0: high precision; role wgrad, {{.*}}reason a Hadamard transform would mix tokens of different groups, suggestion use hadamard=false for it
func.func @grouped(%dy: tensor<96x64xbf16> {fp8.grad}, %x: tensor<96x256xbf16>, %offsets: tensor<5xi32>) -> tensor<4x64x256xf32> {
  %0 = fp8.grouped_matmul %dy, %x offsets(%offsets : tensor<5xi32>) transpose_a transpose_b accumulate = fast
      : tensor<96x64xbf16>, tensor<96x256xbf16> -> tensor<4x64x256xf32>
  return %0 : tensor<4x64x256xf32>
}
