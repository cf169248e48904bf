// RUN: fp8-opt %s --pass-pipeline="builtin.module(gpu.module(gpu.func(fp8-lower-exact-math)))" | FileCheck %s

gpu.module @fp8_kernels {
  // Functions are arithmetic; a quotient stays one.
  // CHECK-LABEL: gpu.func @functions
  // CHECK-NOT:   math.
  // CHECK:       llvm.call_intrinsic "llvm.sqrt.f32"
  // CHECK:       llvm.call_intrinsic "llvm.fabs.f32"
  // CHECK:       arith.divf
  // CHECK-NOT:   math.
  gpu.func @functions(%x: f32, %y: memref<f32>) kernel {
    %0 = math.exp %x : f32
    %1 = math.tanh %0 : f32
    %2 = math.erf %1 : f32
    %3 = math.sqrt %2 : f32
    %4 = math.absf %3 : f32
    %5 = arith.divf %4, %x : f32
    memref.store %5, %y[] : memref<f32>
    gpu.return
  }

  // The positive zero is the larger, which a comparison does not know.
  // CHECK-LABEL: gpu.func @extrema
  // CHECK:       llvm.call_intrinsic "llvm.maximum.f32"
  // CHECK:       llvm.call_intrinsic "llvm.minimum.f32"
  // CHECK:       arith.maximumf {{.*}} : f64
  gpu.func @extrema(%x: f32, %y: f32, %z: f64, %w: f64, %r: memref<f32>, %s: memref<f64>) kernel {
    %0 = arith.maximumf %x, %y : f32
    %1 = arith.minimumf %0, %y : f32
    memref.store %1, %r[] : memref<f32>
    %2 = arith.maximumf %z, %w : f64
    memref.store %2, %s[] : memref<f64>
    gpu.return
  }
}
