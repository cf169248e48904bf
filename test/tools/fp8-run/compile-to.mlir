// RUN: fp8-run %s --compile-to=import | FileCheck %s --check-prefix=IMPORT
// RUN: fp8-run %s --compile-to=host --entry=main | FileCheck %s --check-prefix=HOST

// Printing a phase takes no inputs.

// IMPORT: func.func @main(%{{.*}}: tensor<2xf32>
// HOST-NOT: func.func
// HOST: llvm.func @main
func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  %y = arith.addf %x, %x : tensor<2xf32>
  return %y : tensor<2xf32>
}
