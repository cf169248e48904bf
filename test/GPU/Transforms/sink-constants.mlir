// RUN: fp8-opt %s --fp8-sink-constants | FileCheck %s

// Each launch gets those that it uses, once; what the host computes stays.

// CHECK-LABEL: func.func @launches
// CHECK: %[[SUM:.*]] = arith.addf
// CHECK: gpu.launch
// CHECK: %[[ONE:.*]] = arith.constant 1.000000e+00 : f32
// CHECK-NOT: arith.constant
// CHECK: memref.store %[[ONE]]
// CHECK: scf.if
// CHECK-NEXT: memref.store %[[ONE]]
// CHECK: memref.store %[[SUM]]
// CHECK: gpu.launch
// CHECK: %[[TWO:.*]] = arith.constant 2.000000e+00 : f32
// CHECK: memref.store %[[TWO]]
func.func @launches(%m: memref<8xf32>, %x: f32, %c: i1) {
  %n = arith.constant 1 : index
  %one = arith.constant 1.0 : f32
  %two = arith.constant 2.0 : f32
  %sum = arith.addf %x, %one : f32
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %n, %gy = %n, %gz = %n)
             threads(%tx, %ty, %tz) in (%sx = %n, %sy = %n, %sz = %n) {
    memref.store %one, %m[%tx] : memref<8xf32>
    scf.if %c {
      memref.store %one, %m[%ty] : memref<8xf32>
    }
    memref.store %sum, %m[%tz] : memref<8xf32>
    gpu.terminator
  }
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %n, %gy = %n, %gz = %n)
             threads(%tx, %ty, %tz) in (%sx = %n, %sy = %n, %sz = %n) {
    memref.store %two, %m[%tx] : memref<8xf32>
    gpu.terminator
  }
  return
}
