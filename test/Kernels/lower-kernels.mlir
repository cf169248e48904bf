// RUN: fp8-opt --fp8-lower-kernels %s | FileCheck %s

gpu.module @kernels {
  // No function of a device library is called.
  // CHECK-LABEL: llvm.func @functions
  // CHECK: %[[X:.*]] = llvm.load
  // CHECK: llvm.call_intrinsic "llvm.nvvm.ex2.approx.f32"
  // CHECK: llvm.call_intrinsic "llvm.nvvm.div.full"
  // CHECK: llvm.call_intrinsic "llvm.nvvm.ex2.approx.f32"
  // CHECK: llvm.intr.copysign
  // CHECK: llvm.intr.copysign
  // CHECK-NOT: math.
  // CHECK-NOT: __nv_
  llvm.func @functions(%p: !llvm.ptr<1>) {
    %x = llvm.load %p : !llvm.ptr<1> -> f32
    %0 = math.exp %x : f32
    %1 = arith.divf %0, %x : f32
    %2 = math.erf %1 : f32
    %3 = math.tanh %2 : f32
    %4 = math.log %3 : f32
    llvm.store %4, %p : f32, !llvm.ptr<1>
    llvm.return
  }
}
