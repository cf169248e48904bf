// RUN: not fp8-run %s --recipe=block --fp8-require 2>&1 | FileCheck %s
// RUN: fp8-run %s --recipe=current --max-padding=3 --fp8-require | FileCheck %s --check-prefix=NONE
// RUN: fp8-run %s --recipe=none --fp8-require | FileCheck %s --check-prefix=NONE

// CHECK: error: expected 'f.matmul_0' to be in FP8, but K=4 is not a multiple of 128 and padding it to 128 would add more than 25%
// NONE: result0: F32 [2, 2] min 4 max 4

func.func @f() -> tensor<2x2xf32> {
  %a = arith.constant dense<1.0> : tensor<2x4xf32>
  %b = arith.constant dense<1.0> : tensor<4x2xf32>
  %c = arith.constant dense<0.0> : tensor<2x2xf32>
  %0 = linalg.matmul ins(%a, %b : tensor<2x4xf32>, tensor<4x2xf32>) outs(%c : tensor<2x2xf32>) -> tensor<2x2xf32>
  return %0 : tensor<2x2xf32>
}
