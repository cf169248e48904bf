// RUN: fp8-opt %s --fp8-inline-kernel-calls | FileCheck %s

func.func private @double(%x: f32) -> f32 {
  %0 = arith.addf %x, %x : f32
  return %0 : f32
}
func.func private @nested(%x: f32) -> f32 {
  %0 = func.call @double(%x) : (f32) -> f32
  %1 = arith.mulf %0, %x : f32
  return %1 : f32
}

// Kernels call nothing; the host does.
// CHECK-LABEL: func.func @kernel
// CHECK: gpu.launch
// CHECK: %[[X:.*]] = memref.load
// CHECK-NEXT: %[[SUM:.*]] = arith.addf %[[X]], %[[X]]
// CHECK-NEXT: %[[PRODUCT:.*]] = arith.mulf %[[SUM]], %[[X]]
// CHECK-NEXT: memref.store %[[PRODUCT]]
// CHECK: gpu.terminator
// CHECK: call @double
func.func @kernel(%m: memref<f32>, %y: f32) -> f32 {
  %c1 = arith.constant 1 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
      threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %x = memref.load %m[] : memref<f32>
    %0 = func.call @nested(%x) : (f32) -> f32
    memref.store %0, %m[] : memref<f32>
    gpu.terminator
  }
  %1 = func.call @double(%y) : (f32) -> f32
  return %1 : f32
}
