// RUN: fp8-opt %s --fp8-simplify-casts --verify-diagnostics | FileCheck %s

!q = !fp8.scaled<4x64xf8E4M3FN, block = [*, *], scale = f32>
!row = !fp8.scaled<4x64xf8E4M3FN, block = [1, *], scale = f32>
!qt = !fp8.scaled<64x4xf8E4M3FN, block = [*, *], scale = f32>

// Quantized as it was: nothing to do, through a transpose too.
// CHECK-LABEL: func.func @same
// CHECK-NEXT: return %arg0
func.func @same(%q: !q) -> !q {
  %0 = fp8.dequantize %q : !q -> tensor<4x64xf32>
  %1 = fp8.quantize %0 recipe(#fp8.current) : tensor<4x64xf32> -> !q
  return %1 : !q
}

// CHECK-LABEL: func.func @same_transposed
// CHECK-NEXT: %[[T:.*]] = fp8.transpose %arg0
// CHECK-NEXT: return %[[T]]
func.func @same_transposed(%q: !q) -> !qt {
  %0 = fp8.dequantize %q : !q -> tensor<4x64xf32>
  %e = tensor.empty() : tensor<64x4xf32>
  %t = linalg.transpose ins(%0 : tensor<4x64xf32>) outs(%e : tensor<64x4xf32>) permutation = [1, 0]
  %1 = fp8.quantize %t recipe(#fp8.current) : tensor<64x4xf32> -> !qt
  return %1 : !qt
}

// CHECK-LABEL: func.func @other_blocks
// CHECK: fp8.quantize
func.func @other_blocks(%q: !q) -> !row {
  // expected-note @below {{dequantized here}}
  %0 = fp8.dequantize %q : !q -> tensor<4x64xf32>
  // expected-warning @below {{double quantization: a tensor dequantized from '!fp8.scaled<4x64xf8E4M3FN, block = [*, *], scale = f32>' is quantized again to '!fp8.scaled<4x64xf8E4M3FN, block = [1, *], scale = f32>'; quantize it from its high-precision source}}
  %1 = fp8.quantize %0 recipe(#fp8.rowwise) : tensor<4x64xf32> -> !row
  return %1 : !row
}

// A given scale is not known to be the one that was used.
// CHECK-LABEL: func.func @other_scale
// CHECK: fp8.quantize
func.func @other_scale(%q: !q, %s: tensor<1x1xf32>) -> !q {
  // expected-note @below {{dequantized here}}
  %0 = fp8.dequantize %q : !q -> tensor<4x64xf32>
  // expected-warning @below {{double quantization}}
  %1 = fp8.quantize %0 scale(%s, %s : tensor<1x1xf32>, tensor<1x1xf32>) : tensor<4x64xf32> -> !q
  return %1 : !q
}
