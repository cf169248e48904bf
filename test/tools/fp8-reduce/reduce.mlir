// RUN: fp8-reduce %s --reduction-tree='traversal-mode=0 test=%S/Inputs/has-quantize.sh' | FileCheck %s

// Only the function that the script looks for is left.
// CHECK-NOT: func.func @dequantize
// CHECK: func.func @quantize
// CHECK: fp8.quantize
// CHECK-NOT: func.func @dequantize
func.func @dequantize(%a: !fp8.scaled<32x64xf8E4M3FN, block = [1, *], scale = f32>) -> tensor<32x64xf32> {
  %0 = fp8.dequantize %a : !fp8.scaled<32x64xf8E4M3FN, block = [1, *], scale = f32> -> tensor<32x64xf32>
  return %0 : tensor<32x64xf32>
}

func.func @quantize(%x: tensor<32x64xf32>) -> tensor<32x64xf32> {
  %0 = fp8.quantize %x recipe(#fp8.rowwise)
      : tensor<32x64xf32> -> !fp8.scaled<32x64xf8E4M3FN, block = [1, *], scale = f32>
  %1 = fp8.dequantize %0 : !fp8.scaled<32x64xf8E4M3FN, block = [1, *], scale = f32> -> tensor<32x64xf32>
  return %1 : tensor<32x64xf32>
}
