// RUN: fp8-opt %s --fp8-form-matmul | FileCheck %s

// What the user dequantized and multiplied stays as it is where no fp8.matmul
// can do it.

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (n, k)>
#c = affine_map<(m, n, k) -> (m, n)>
!t = tensor<64x64xf32>
!tensor = !fp8.scaled<64x64xf8E4M3FN, block = [*, *], scale = f32>
!blocks = !fp8.scaled<64x64xf8E4M3FN, block = [1, 32], scale = f8E8M0FNU>

// CHECK-LABEL: func.func @blocks_differ
// CHECK-NOT: fp8.matmul
func.func @blocks_differ(%a: !tensor, %b: !blocks, %c: !t) -> !t {
  %0 = fp8.dequantize %a : !tensor -> !t
  %1 = fp8.dequantize %b : !blocks -> !t
  %2 = linalg.contract indexing_maps = [#a, #b, #c] ins(%0, %1 : !t, !t) outs(%c : !t) -> !t
  return %2 : !t
}

// CHECK-LABEL: func.func @one_operand
// CHECK-NOT: fp8.matmul
func.func @one_operand(%a: !tensor, %b: !t, %c: !t) -> !t {
  %0 = fp8.dequantize %a : !tensor -> !t
  %2 = linalg.contract indexing_maps = [#a, #b, #c] ins(%0, %b : !t, !t) outs(%c : !t) -> !t
  return %2 : !t
}

// Not K-major: apply-recipe transposes, this pass does not.
// CHECK-LABEL: func.func @not_canonical
// CHECK-NOT: fp8.matmul
func.func @not_canonical(%a: !tensor, %b: !tensor, %c: !t) -> !t {
  %0 = fp8.dequantize %a : !tensor -> !t
  %1 = fp8.dequantize %b : !tensor -> !t
  %2 = linalg.matmul ins(%0, %1 : !t, !t) outs(%c : !t) -> !t
  return %2 : !t
}

// Rounded to bf16 on the way.
// CHECK-LABEL: func.func @bf16
// CHECK-NOT: fp8.matmul
func.func @bf16(%a: !tensor, %b: !tensor, %c: !t) -> !t {
  %0 = fp8.dequantize %a : !tensor -> tensor<64x64xbf16>
  %1 = fp8.dequantize %b : !tensor -> tensor<64x64xbf16>
  %2 = linalg.contract indexing_maps = [#a, #b, #c] ins(%0, %1 : tensor<64x64xbf16>, tensor<64x64xbf16>) outs(%c : !t) -> !t
  return %2 : !t
}
