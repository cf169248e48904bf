// RUN: fp8-opt %s --fp8-lower-kernels | FileCheck %s

// Generated kernels and those of loops are in one module, each with the math that
// its attribute names.

// CHECK-LABEL: llvm.func @generated(
// CHECK:       llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz.f32"
// CHECK:       llvm.call_intrinsic "llvm.nvvm.div.full"
// CHECK-NOT:   llvm.fdiv
// CHECK-LABEL: llvm.func @generated_exactly(
// CHECK-NOT:   approx
// CHECK:       llvm.fdiv
// CHECK-NOT:   approx
// CHECK-LABEL: llvm.func @outlined(
// CHECK-NOT:   approx
// CHECK:       llvm.fdiv
// CHECK-NOT:   approx
// CHECK-NOT:   {{(math|arith|gpu|memref|scf|cf)\.}}
// CHECK:       llvm.return
gpu.module @fp8_kernels {
  llvm.func @generated(%n: i32, %p: !llvm.ptr<1>) attributes {fp8_gpu.math = #fp8_gpu.math<approximate>, nvvm.kernel} {
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    scf.for %i = %zero to %n step %one : i32 {
      %x = llvm.load %p : !llvm.ptr<1> -> f32
      %0 = math.exp %x : f32
      %1 = arith.divf %0, %x : f32
      llvm.store %1, %p : f32, !llvm.ptr<1>
    }
    llvm.return
  }
  llvm.func @generated_exactly(%p: !llvm.ptr<1>) attributes {nvvm.kernel} {
    %x = llvm.load %p : !llvm.ptr<1> -> f32
    %0 = math.exp %x : f32
    %1 = arith.divf %0, %x : f32
    llvm.store %1, %p : f32, !llvm.ptr<1>
    llvm.return
  }
  gpu.func @outlined(%y: memref<256xf32>) kernel {
    %i = gpu.block_id x
    %x = memref.load %y[%i] : memref<256xf32>
    %0 = math.exp %x : f32
    %1 = arith.divf %0, %x : f32
    memref.store %1, %y[%i] : memref<256xf32>
    gpu.return
  }
}
