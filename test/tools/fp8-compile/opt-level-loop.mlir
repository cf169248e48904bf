// RUN: fp8-compile %s --target=cpu --opt-level=0 --emit=llvm -o - | FileCheck %s

// Memory on the stack that a loop asks for, here to look an extent up, is the
// frame's, and is not taken anew each time.

// CHECK-LABEL: define {{.*}} @sizes(
// CHECK-NEXT:  alloca [2 x i64]
// CHECK:       br label
// CHECK-NOT:   alloca
// CHECK:       ret
func.func @sizes(%x: tensor<?x?xf32>) -> tensor<1xi64> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %n = scf.for %i = %c0 to %c2 step %c1 iter_args(%sum = %c0) -> index {
    %size = tensor.dim %x, %i : tensor<?x?xf32>
    %next = arith.addi %sum, %size : index
    scf.yield %next : index
  }
  %wide = arith.index_cast %n : index to i64
  %result = tensor.from_elements %wide : tensor<1xi64>
  return %result : tensor<1xi64>
}
