// RUN: fp8-run %s --compile-to=binary --outputs=%t.o
// RUN: %c_compiler -x c %S/Inputs/call_add.c -x none %t.o -L%fp8_build/lib -lfp8rt -lm -Wl,-rpath,%fp8_build/lib -o %t
// RUN: %t | FileCheck %s
// RUN: not fp8-run %s --compile-to=binary 2>&1 | FileCheck %s --check-prefix=NOFILE
// UNSUPPORTED: sanitizers

// The object is called from C, as libfp8rt's users will.
// CHECK: 3.5 4.5

// NOFILE: error: expected --outputs=FILE.o with --compile-to=binary

func.func @add(%x: tensor<2xf32>, %y: tensor<2xf32>) -> tensor<2xf32> {
  %0 = arith.addf %x, %y : tensor<2xf32>
  return %0 : tensor<2xf32>
}
