// RUN: fp8-opt %s --fp8-pipeline="recipe=current to=fusion" | FileCheck %s --check-prefixes=CHECK,TENSOR
// RUN: fp8-opt %s --fp8-pipeline="recipe=mxfp8 to=fusion" | FileCheck %s --check-prefixes=CHECK,MX

!t = tensor<64x64xbf16>
!c = tensor<64x64xf32>

// Two matmuls read one quantized x.
// CHECK-LABEL: func.func @two_uses
// CHECK-COUNT-3: fp8.quantize
// CHECK-NOT: fp8.quantize
// CHECK: return
func.func @two_uses(%x: !t, %v: !t, %w: !t, %c: !c) -> (!c, !c) {
  %0 = linalg.matmul ins(%x, %v : !t, !t) outs(%c : !c) -> !c
  %1 = linalg.matmul ins(%x, %w : !t, !t) outs(%c : !c) -> !c
  return %0, %1 : !c, !c
}

// As it is and transposed: one scale for the tensor serves both, blocks of 32
// along K differ, and both are taken from x itself.
// CHECK-LABEL: func.func @both_ways
// TENSOR-COUNT-1: fp8.quantize %arg0
// TENSOR-NOT: fp8.quantize
// MX-DAG: fp8.quantize %arg0 {{.*}} block = [1, 32]
// MX-DAG: fp8.quantize %arg0 {{.*}} block = [32, 1]
// CHECK: return
func.func @both_ways(%x: !t, %c: !c) -> !c {
  %0 = linalg.matmul ins(%x, %x : !t, !t) outs(%c : !c) -> !c
  return %0 : !c
}
