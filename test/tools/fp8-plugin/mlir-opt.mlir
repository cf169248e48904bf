// REQUIRES: plugin
// RUN: mlir-opt %s --load-dialect-plugin=%fp8_plugin --load-pass-plugin=%fp8_plugin \
// RUN:   --pass-pipeline='builtin.module(fp8-pipeline{recipe=current target=cpu to=fusion})' | FileCheck %s
// RUN: mlir-opt %s --load-dialect-plugin=%fp8_plugin --load-pass-plugin=%fp8_plugin \
// RUN:   --pass-pipeline='builtin.module(fp8-annotate-gemms)' | FileCheck %s --check-prefix=PASS

// PASS: linalg.matmul {{.*}}#fp8.role<fprop>

// CHECK-LABEL: func.func @matmul
// CHECK: fp8.matmul
func.func @matmul(%a: tensor<32x64xbf16>, %b: tensor<64x128xbf16>) -> tensor<32x128xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<32x128xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<32x128xf32>) -> tensor<32x128xf32>
  %0 = linalg.matmul ins(%a, %b : tensor<32x64xbf16>, tensor<64x128xbf16>)
                     outs(%init : tensor<32x128xf32>) -> tensor<32x128xf32>
  return %0 : tensor<32x128xf32>
}

// A stock mlir-opt reads the dialect's types as well.
// CHECK-LABEL: func.func @scaled(
// CHECK-SAME: !fp8.scaled<32x64xf8E4M3FN, block = [1, *], scale = f32>
func.func @scaled(%a: !fp8.scaled<32x64xf8E4M3FN, block = [1, *], scale = f32>) -> tensor<32x64xf32> {
  %0 = fp8.dequantize %a : !fp8.scaled<32x64xf8E4M3FN, block = [1, *], scale = f32> -> tensor<32x64xf32>
  return %0 : tensor<32x64xf32>
}
