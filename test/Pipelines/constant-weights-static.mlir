// RUN: %python %S/../Transforms/State/Inputs/make_state.py %t.safetensors fc.x:e4m3:4.0 fc.w:e4m3:0.5
// RUN: fp8-opt %s --fp8-pipeline="recipe=static,state=%t.safetensors to=fusion" | FileCheck %s

// A calibrated program: the scales come from a file, the codes of the weight
// from them, and only the activation is quantized in a call.

// CHECK-LABEL: func.func @main
func.func @main(%x: tensor<2x16xbf16>) -> tensor<2x16xbf16> {
  // CHECK-COUNT-1: fp8.quantize %arg0
  // CHECK-NOT: fp8.quantize
  // CHECK: %[[CODES:.*]] = arith.constant dense<1.000000e+00> : tensor<16x16xf8E4M3FN>
  // CHECK: fp8.assemble %[[CODES]]
  // CHECK-NOT: fp8.quantize
  %w = arith.constant dense<2.0> : tensor<16x16xbf16>
  %zero = arith.constant 0.0 : bf16
  %empty = tensor.empty() : tensor<2x16xbf16>
  %zeros = linalg.fill ins(%zero : bf16) outs(%empty : tensor<2x16xbf16>) -> tensor<2x16xbf16>
  %y = linalg.matmul ins(%x, %w : tensor<2x16xbf16>, tensor<16x16xbf16>) outs(%zeros : tensor<2x16xbf16>) -> tensor<2x16xbf16> loc("fc")
  return %y : tensor<2x16xbf16>
}
