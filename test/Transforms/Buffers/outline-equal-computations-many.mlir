// RUN: fp8-opt %s --fp8-outline-equal-computations=max-in-place=1 | FileCheck %s
// RUN: fp8-opt %s --fp8-outline-equal-computations=max-in-place=2 | FileCheck %s --check-prefix=FEW

// More than a function may have become functions although nothing equals them.
// CHECK-LABEL: func.func @many
// CHECK: %[[Y:.*]] = call @many_exp(
// CHECK: call @many_log(%[[Y]],
// CHECK-DAG: func.func private @many_exp
// CHECK-DAG: func.func private @many_log
// FEW-NOT: call
func.func @many(%x: tensor<64xf32>) -> tensor<64xf32> {
  %e = tensor.empty() : tensor<64xf32>
  %0 = linalg.exp ins(%x : tensor<64xf32>) outs(%e : tensor<64xf32>) -> tensor<64xf32>
  %f = tensor.empty() : tensor<64xf32>
  %1 = linalg.log ins(%0 : tensor<64xf32>) outs(%f : tensor<64xf32>) -> tensor<64xf32>
  return %1 : tensor<64xf32>
}
