// RUN: rm -rf %t && mkdir %t
// RUN: fp8-compile %s --emit=obj -o %t/calls.o
// RUN: %c_compiler -std=c11 -Wall -Wextra -pedantic -Werror -I%t -I%fp8_source/include %S/Inputs/object.c %t/calls.o -L%fp8_build/lib -lfp8rt -lm -Wl,-rpath,%fp8_build/lib -o %t/call
// RUN: %t/call | FileCheck %s
// UNSUPPORTED: sanitizers

// An object is linked by its host, which may have names that the program has.

// CHECK: 3.5 4.5
// CHECK-NEXT: 2 -1

func.func private @helper(%x: i32) -> i32 {
  %0 = arith.addi %x, %x : i32
  return %0 : i32
}
func.func @step(%x: i32) -> i32 {
  %0 = call @helper(%x) : (i32) -> i32
  return %0 : i32
}
func.func @add(%x: tensor<2xf32>, %y: tensor<2xf32>) -> tensor<2xf32> {
  %0 = arith.addf %x, %y : tensor<2xf32>
  return %0 : tensor<2xf32>
}
