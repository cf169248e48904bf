// RUN: %python %S/Inputs/tensors.py make %t.in arg0=F32:4:1.0000001192092896,1e-40,3e38,-3e-40 arg1=F32:4:1.0000001192092896,1,1,1 arg2=F32:4:-1.000000238418579,0,0,0
// RUN: fp8-run %s --inputs=%t.in --outputs=%t.out
// RUN: %python %S/Inputs/tensors.py show %t.out | FileCheck %s

// No contraction: x * x rounds to 1 + 2^-22 before the sum, where a fused
// multiply-add would leave 2^-46. Subnormal numbers are kept, in f32 and on the
// way to bf16.

// CHECK: fma: F32 [4]: 0.0 9.99994610111476e-41 3.0000000054977558e+38 -2.999997843319071e-40
// CHECK-NEXT: narrow: BF16 [4]: 1.0 9.183549615799121e-41 3.00405527047391e+38 -2.7550648847397363e-40
func.func @main(%x: tensor<4xf32>, %y: tensor<4xf32>, %z: tensor<4xf32>)
    -> (tensor<4xf32> {fp8.name = "fma"}, tensor<4xbf16> {fp8.name = "narrow"}) {
  %product = arith.mulf %x, %y : tensor<4xf32>
  %sum = arith.addf %product, %z : tensor<4xf32>
  %narrow = arith.truncf %x : tensor<4xf32> to tensor<4xbf16>
  return %sum, %narrow : tensor<4xf32>, tensor<4xbf16>
}
