// RUN: fp8-opt %s --fp8-form-matmul --split-input-file | FileCheck %s

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (n, k)>
#c = affine_map<(m, n, k) -> (m, n)>
!qa = !fp8.scaled<32x64xf8E4M3FN, block = [*, *], scale = f32>
!qb = !fp8.scaled<16x64xf8E5M2, block = [*, *], scale = f32>

// CHECK-LABEL: func.func @zero_init
// CHECK-SAME: %[[A:[^:]*]]: !fp8.scaled<32x64{{[^%]*}}%[[B:[^:]*]]:
func.func @zero_init(%a: !qa, %b: !qb) -> tensor<32x16xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<32x16xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<32x16xf32>) -> tensor<32x16xf32>
  %0 = fp8.dequantize %a : !qa -> tensor<32x64xf32>
  %1 = fp8.dequantize %b : !qb -> tensor<16x64xf32>
  // CHECK: %[[R:.*]] = fp8.matmul %[[A]], %[[B]] accumulate = fast {fp8.name = "fc", fp8.operands = [#fp8.operand<gradient>, #fp8.operand<weight>], fp8.recipe = #fp8.current, fp8.role = #fp8.role<dgrad>}
  // CHECK-NEXT: return %[[R]]
  %2 = linalg.contract indexing_maps = [#a, #b, #c]
      {fp8.accumulate = #fp8<accumulate fast>, fp8.name = "fc", fp8.operands = [#fp8.operand<gradient>, #fp8.operand<weight>], fp8.recipe = #fp8.current, fp8.role = #fp8.role<dgrad>}
      ins(%0, %1 : tensor<32x64xf32>, tensor<16x64xf32>) outs(%init : tensor<32x16xf32>) -> tensor<32x16xf32>
  return %2 : tensor<32x16xf32>
}

// An initial value is added.
// CHECK-LABEL: func.func @accumulate
// CHECK-SAME: %[[C:[^: ]*]]: tensor<32x16xf32>)
func.func @accumulate(%a: !qa, %b: !qb, %c: tensor<32x16xf32>) -> tensor<32x16xf32> {
  %0 = fp8.dequantize %a : !qa -> tensor<32x64xf32>
  %1 = fp8.dequantize %b : !qb -> tensor<16x64xf32>
  // CHECK: %[[R:.*]] = fp8.matmul
  // CHECK: linalg.generic {{.*}} ins(%[[R]], %[[C]] :
  // CHECK: arith.addf
  %2 = linalg.contract indexing_maps = [#a, #b, #c]
      ins(%0, %1 : tensor<32x64xf32>, tensor<16x64xf32>) outs(%c : tensor<32x16xf32>) -> tensor<32x16xf32>
  return %2 : tensor<32x16xf32>
}

// -----

// CHECK-LABEL: func.func @batched
func.func @batched(%a: !fp8.scaled<4x?x64xf8E4M3FN, block = [1, 1, 32], scale = f8E8M0FNU>,
                   %b: !fp8.scaled<4x16x64xf8E4M3FN, block = [1, 1, 32], scale = f8E8M0FNU>,
                   %c: tensor<4x?x16xf32>) -> tensor<4x?x16xf32> {
  %0 = fp8.dequantize %a : !fp8.scaled<4x?x64xf8E4M3FN, block = [1, 1, 32], scale = f8E8M0FNU> -> tensor<4x?x64xf32>
  %1 = fp8.dequantize %b : !fp8.scaled<4x16x64xf8E4M3FN, block = [1, 1, 32], scale = f8E8M0FNU> -> tensor<4x16x64xf32>
  // CHECK: fp8.matmul {{.*}} -> tensor<4x?x16xf32>
  %2 = linalg.contract indexing_maps = [affine_map<(b, m, n, k) -> (b, m, k)>, affine_map<(b, m, n, k) -> (b, n, k)>, affine_map<(b, m, n, k) -> (b, m, n)>]
      ins(%0, %1 : tensor<4x?x64xf32>, tensor<4x16x64xf32>) outs(%c : tensor<4x?x16xf32>) -> tensor<4x?x16xf32>
  return %2 : tensor<4x?x16xf32>
}
