// RUN: fp8-compile %s --emit=obj --name=demo -o %t.o
// RUN: llvm-nm --extern-only --defined-only --format=just-symbols %t.o | FileCheck %s --match-full-lines --implicit-check-not={{.}}
// RUN: llvm-nm --undefined-only --format=just-symbols %t.o | FileCheck %s --check-prefix=CALLS
// RUN: fp8-compile %s --emit=obj --name=_mlir_ciface -o %t.o
// RUN: llvm-nm --extern-only --defined-only --format=just-symbols %t.o | FileCheck %s --match-full-lines --implicit-check-not={{.}} --check-prefix=MLIR
// RUN: FileCheck %s --match-full-lines --check-prefix=HEADER --input-file=%t.h

// Functions and globals of the program have no names outside of it, whatever
// they are called.

// CHECK:      demo_program
// CHECK-NEXT: demo_step
// CHECK-NEXT: demo_two_lines
// CHECK-NEXT: fp8rt_program
// MLIR:       _mlir_ciface_program
// MLIR-NEXT:  _mlir_ciface_step
// MLIR-NEXT:  _mlir_ciface_two_lines
// MLIR-NEXT:  fp8rt_program
// HEADER: /// The function 'two\0Alines'.

// Nor do they stand in for those of the runtime.

// CALLS-DAG: {{^}}fp8rt_program_call{{$}}
// CALLS-DAG: {{^}}fp8rt_program_fail{{$}}

memref.global @demo_table : memref<2xi32> = dense<[1, 2]>
func.func private @demo_step(%x: i32) -> i32 {
  %c0 = arith.constant 0 : index
  %table = memref.get_global @demo_table : memref<2xi32>
  %0 = memref.load %table[%c0] : memref<2xi32>
  %1 = arith.addi %x, %0 : i32
  return %1 : i32
}
func.func private @fp8rt_program(%x: i32) -> i32 {
  %0 = call @demo_step(%x) : (i32) -> i32
  return %0 : i32
}
func.func private @fp8rt_program_call(%x: i32) -> i32 {
  %0 = call @fp8rt_program(%x) : (i32) -> i32
  return %0 : i32
}
func.func private @fp8rt_program_fail(%x: i32) -> i32 {
  %c0 = arith.constant 0 : i32
  %ok = arith.cmpi ne, %x, %c0 : i32
  cf.assert %ok, "expected another number"
  %0 = call @fp8rt_program_call(%x) : (i32) -> i32
  return %0 : i32
}
func.func @step(%x: i32) -> i32 {
  %0 = call @fp8rt_program_fail(%x) : (i32) -> i32
  return %0 : i32
}
func.func @"two\0Alines"() {
  return
}
