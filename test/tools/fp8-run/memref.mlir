// RUN: %python %S/Inputs/tensors.py make %t.in x=F32:2x2:1,2,3,4 y=F32:2x2:10 scale=F32::3
// RUN: fp8-run %s --entry=accumulate --inputs=%t.in --outputs=%t.out --time | FileCheck %s --check-prefix=TIME
// RUN: %python %S/Inputs/tensors.py show %t.out | FileCheck %s
// RUN: %python %S/Inputs/tensors.py show %t.in | FileCheck %s --check-prefix=INPUT
// RUN: %python %S/Inputs/tensors.py make %t.in2 arg0=F32:2x2:1,2,3,4
// RUN: fp8-run %s --entry=view --inputs=%t.in2 | FileCheck %s --check-prefix=VIEW
// RUN: fp8-run %s --entry=itself --inputs=%t.in2 | FileCheck %s --check-prefix=ITSELF
// RUN: fp8-run %s --entry=global --time | FileCheck %s --check-prefix=GLOBAL

// A program that is already bufferized has no results: the memrefs are the
// outputs. Runs for the time start from the same values.

// CHECK: x: F32 [2, 2]: 1.0 2.0 3.0 4.0
// CHECK-NEXT: y: F32 [2, 2]: 13.0 16.0 19.0 22.0
// CHECK-NOT: {{.}}
// INPUT: y: F32 [2, 2]: 10.0 10.0 10.0 10.0
// TIME: compile: {{[0-9.]+}} ms
// TIME-NEXT: run: min {{[0-9.e-]+}} ms, median {{[0-9.e-]+}} ms, max {{[0-9.e-]+}} ms ({{[0-9]+}} runs)
func.func @accumulate(%x: memref<2x2xf32> {fp8.name = "x"},
                      %y: memref<?x2xf32, strided<[2, 1], offset: ?>> {fp8.name = "y"},
                      %scale: f32 {fp8.name = "scale"}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  scf.for %i = %c0 to %c2 step %c1 {
    scf.for %j = %c0 to %c2 step %c1 {
      %a = memref.load %x[%i, %j] : memref<2x2xf32>
      %b = memref.load %y[%i, %j] : memref<?x2xf32, strided<[2, 1], offset: ?>>
      %scaled = arith.mulf %a, %scale : f32
      %sum = arith.addf %b, %scaled : f32
      memref.store %sum, %y[%i, %j] : memref<?x2xf32, strided<[2, 1], offset: ?>>
    }
  }
  return
}

// A result may be part of an argument, with strides and an offset.
// VIEW: result0: F32 [2, 1] min 2 max 4 values 2 4
func.func @view(%x: memref<2x2xf32>)
    -> memref<?x?xf32, strided<[?, ?], offset: ?>> {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %column = memref.subview %x[0, %c1] [%c2, %c1] [%c1, %c1]
      : memref<2x2xf32> to memref<?x?xf32, strided<[?, ?], offset: ?>>
  return %column : memref<?x?xf32, strided<[?, ?], offset: ?>>
}

// ITSELF: result0: F32 [2, 2] min 1 max 4 values 1 2 3 4
// ITSELF: result1: F32 [2, 2] min 1 max 4 values 1 2 3 4
func.func @itself(%x: memref<2x2xf32>) -> (memref<2x2xf32>, memref<2x2xf32>) {
  return %x, %x : memref<2x2xf32>, memref<2x2xf32>
}

// What the program owns for good is not freed after a run.
// GLOBAL: result0: F32 [2] min 5 max 6 values 5 6
memref.global "private" constant @weights : memref<2xf32> = dense<[5.0, 6.0]>
func.func @global() -> memref<2xf32> {
  %weights = memref.get_global @weights : memref<2xf32>
  return %weights : memref<2xf32>
}
