// RUN: not fp8-opt %s --fp8-pipeline="recipe=none target=sm_90a kernel-format=ptx" 2>&1 -o /dev/null | FileCheck %s

// Several kernels that cannot be are one error, the first.

// CHECK-NOT: error:
// CHECK: [[#@LINE+4]]:{{[0-9]+}}: error: 'math.erf' op is not supported on a GPU on 'f64'
// CHECK-NOT: error:

func.func @f(%a: tensor<4x9xf64>, %b: tensor<7xf64>) -> (tensor<4x9xf64>, tensor<7xf64>) {
  %0 = math.erf %a : tensor<4x9xf64>
  %1 = math.sin %b : tensor<7xf64>
  return %0, %1 : tensor<4x9xf64>, tensor<7xf64>
}
