// RUN: fp8-run %s --compile-to=binary --outputs=%t.o
// RUN: llvm-nm --extern-only --defined-only --format=just-symbols %t.o | FileCheck %s --check-prefix=NAMES
// RUN: %c_compiler -x c %S/Inputs/call_step.c -x none %t.o -L%fp8_build/lib -lfp8rt -lm -Wl,-rpath,%fp8_build/lib -o %t
// RUN: %t | FileCheck %s
// UNSUPPORTED: sanitizers

// Of an object only the C interface is seen: `step` and `helper` are names of
// the program alone.

// NAMES-NOT: {{^(step|helper)$}}
// NAMES:     {{^_mlir_ciface_step$}}
// NAMES-NOT: {{^(step|helper)$}}
// CHECK: 2 -1

func.func private @helper(%x: i32) -> i32 {
  %0 = arith.addi %x, %x : i32
  return %0 : i32
}
func.func @step(%x: i32) -> i32 {
  %0 = call @helper(%x) : (i32) -> i32
  return %0 : i32
}
