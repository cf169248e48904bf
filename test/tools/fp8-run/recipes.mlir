// RUN: %python %S/Inputs/tensors.py make %t.in x=BF16:32x64:1,-2,0.5,3.5 w=BF16:64x32:0.25,1,-1.75
// RUN: fp8-run %s --inputs=%t.in --recipe=none --stats 2>&1 | FileCheck %s --check-prefixes=CHECK,NONE
// RUN: fp8-run %s --inputs=%t.in --recipe=current --stats | FileCheck %s --check-prefixes=CHECK,FP8
// RUN: fp8-run %s --inputs=%t.in --recipe=rowwise --stats | FileCheck %s --check-prefixes=CHECK,FP8
// RUN: fp8-run %s --inputs=%t.in --recipe=mxfp8 --stats --fp8-remarks=text:- | FileCheck %s --check-prefixes=CHECK,FP8,REMARK

// The maxima are 448 times a power of two and the other values have few bits:
// every recipe is exact here.

// CHECK-NOT: warning
// CHECK: y: BF16 [32, 32] min -17.25 max -2.375 values -2.375 -4.375 -17.25 -2.375 ...
// NONE: no tensor is quantized
// FP8: fc.matmul_0.x {{ *}}3.5 {{ *}}0.000 {{ *}}0.000 {{ *}}inf
// FP8: fc.matmul_0.w {{ *}}1.75 {{ *}}0.000 {{ *}}0.000 {{ *}}inf
// REMARK: fc.matmul_0: fp8
func.func @fc(%x: tensor<32x64xbf16> {fp8.name = "x"},
              %w: tensor<64x32xbf16> {fp8.name = "w"})
    -> (tensor<32x32xbf16> {fp8.name = "y"}) {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<32x32xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<32x32xf32>)
      -> tensor<32x32xf32>
  %sum = linalg.matmul ins(%x, %w : tensor<32x64xbf16>, tensor<64x32xbf16>)
      outs(%init : tensor<32x32xf32>) -> tensor<32x32xf32>
  %y = arith.truncf %sum : tensor<32x32xf32> to tensor<32x32xbf16>
  return %y : tensor<32x32xbf16>
}
