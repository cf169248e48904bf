// RUN: fp8-opt %s --fp8-apply-recipe=recipe=current | FileCheck %s --check-prefixes=CHECK,HYBRID
// RUN: fp8-opt %s --fp8-apply-recipe=recipe=current,format=e4m3,accumulate=fast | FileCheck %s --check-prefixes=CHECK,E4M3
// RUN: fp8-opt %s --fp8-apply-recipe=recipe=current,format=e5m2 | FileCheck %s --check-prefix=E5M2

// One scale for a tensor. All of a matmul is spelled out here once; the other
// recipes differ in formats and blocks only.

// CHECK-LABEL: func.func @fprop
// E5M2-LABEL: func.func @fprop
// E5M2: fp8.quantize {{.*}} -> <32x64xf8E5M2, block = [*, *], scale = f32>
// E5M2: fp8.quantize {{.*}} -> <16x64xf8E5M2, block = [*, *], scale = f32>
// CHECK-SAME: %[[X:[^:]*]]: tensor<32x64xbf16>, %[[W:[^:]*]]: tensor<64x16xbf16>
func.func @fprop(%x: tensor<32x64xbf16>, %w: tensor<64x16xbf16>) -> tensor<32x16xbf16> {
  // CHECK: %[[WT:.*]] = linalg.transpose ins(%[[W]] : {{.*}} permutation = [1, 0]
  // CHECK-DAG: %[[QX:.*]] = fp8.quantize %[[X]] recipe([[R:#fp8.current.*]]) : {{.*}} -> <32x64xf8E4M3FN, block = [*, *], scale = f32>
  // CHECK-DAG: %[[DX:.*]] = fp8.dequantize %[[QX]] : {{.*}} -> tensor<32x64xf32>
  // CHECK-DAG: %[[QW:.*]] = fp8.quantize %[[WT]] recipe([[R]]) : {{.*}} -> <16x64xf8E4M3FN, block = [*, *], scale = f32>
  // CHECK-DAG: %[[DW:.*]] = fp8.dequantize %[[QW]] : {{.*}} -> tensor<16x64xf32>
  // CHECK: %[[ZERO:.*]] = linalg.fill {{.*}} -> tensor<32x16xf32>
  // CHECK: %[[ACC:.*]] = linalg.contract indexing_maps = [#[[A:[a-z0-9]+]], #[[B:[a-z0-9]+]], #[[C:[a-z0-9]+]]]
  // HYBRID-SAME: fp8.accumulate = #fp8<accumulate promote>
  // E4M3-SAME: fp8.accumulate = #fp8<accumulate fast>
  // CHECK-SAME: fp8.name = "fc", fp8.operands = [#fp8.operand<activation>, #fp8.operand<weight>]
  // CHECK-SAME: fp8.recipe = [[R]], fp8.role = #fp8.role<fprop>
  // CHECK-SAME: ins(%[[DX]], %[[DW]] : {{.*}} outs(%[[ZERO]] :
  // CHECK: linalg.generic {{.*}} ins(%[[ACC]] : {{.*}} outs(%{{.*}} : tensor<32x16xbf16>)
  // CHECK: arith.truncf
  %zero = arith.constant 0.0 : bf16
  %e = tensor.empty() : tensor<32x16xbf16>
  %c = linalg.fill ins(%zero : bf16) outs(%e : tensor<32x16xbf16>) -> tensor<32x16xbf16>
  %0 = linalg.matmul {fp8.name = "fc"} ins(%x, %w : tensor<32x64xbf16>, tensor<64x16xbf16>) outs(%c : tensor<32x16xbf16>) -> tensor<32x16xbf16>
  return %0 : tensor<32x16xbf16>
}

// E5M2 for gradients under hybrid.
// CHECK-LABEL: func.func @dgrad
// HYBRID: fp8.quantize {{.*}} -> <32x64xf8E5M2, block = [*, *]
// E4M3: fp8.quantize {{.*}} -> <32x64xf8E4M3FN, block = [*, *]
// CHECK: fp8.quantize {{.*}} -> <16x64xf8E4M3FN, block = [*, *]
// CHECK: fp8.role = #fp8.role<dgrad>
func.func @dgrad(%dy: tensor<32x64xbf16> {fp8.grad}, %w: tensor<64x16xbf16> {fp8.weight}, %c: tensor<32x16xf32>) -> tensor<32x16xf32> {
  %0 = linalg.matmul ins(%dy, %w : tensor<32x64xbf16>, tensor<64x16xbf16>) outs(%c : tensor<32x16xf32>) -> tensor<32x16xf32>
  return %0 : tensor<32x16xf32>
}

// The gradient accumulates onto what is there, in f32.
// CHECK-LABEL: func.func @wgrad
// CHECK-SAME: %[[ACC:[^: ]*]]: tensor<64x16xf32>)
// CHECK: linalg.transpose {{.*}} permutation = [1, 0]
// HYBRID: fp8.quantize {{.*}} -> <64x32xf8E5M2, block = [*, *]
// CHECK: fp8.quantize {{.*}} -> <16x32xf8E4M3FN, block = [*, *]
// CHECK: linalg.contract {{.*}}fp8.role = #fp8.role<wgrad>{{.*}} outs(%[[ACC]] :
func.func @wgrad(%dy: tensor<32x64xbf16> {fp8.grad}, %x: tensor<32x16xbf16>, %dw: tensor<64x16xf32>) -> tensor<64x16xf32> {
  %h = math.tanh %x : tensor<32x16xbf16>
  %0 = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
      ins(%dy, %h : tensor<32x64xbf16>, tensor<32x16xbf16>) outs(%dw : tensor<64x16xf32>) -> tensor<64x16xf32>
  return %0 : tensor<64x16xf32>
}

// Both are E5M2 under hybrid, which tensor cores multiply as well.
// CHECK-LABEL: func.func @two_gradients
// HYBRID: fp8.quantize {{.*}} -> <16x16xf8E5M2, block = [*, *]
// HYBRID: fp8.quantize {{.*}} -> <16x16xf8E5M2, block = [*, *]
// E4M3: fp8.quantize {{.*}} -> <16x16xf8E4M3FN, block = [*, *]
func.func @two_gradients(%x: tensor<16x16xf32> {fp8.grad}, %c: tensor<16x16xf32>) -> tensor<16x16xf32> {
  %0 = linalg.matmul ins(%x, %x : tensor<16x16xf32>, tensor<16x16xf32>) outs(%c : tensor<16x16xf32>) -> tensor<16x16xf32>
  return %0 : tensor<16x16xf32>
}
