// RUN: fp8-opt %s --pass-pipeline="builtin.module(gpu.module(fp8-convert-outlined-kernels))" | FileCheck %s

// A kernel that was outlined from loops becomes a function of the LLVM dialect,
// without what the conversion leaves of index arithmetic.

// CHECK-LABEL: gpu.module @fp8_kernels
// CHECK:       llvm.func @outlined(
// CHECK-SAME:  attributes {gpu.kernel, {{.*}}nvvm.kernel
// CHECK:       nvvm.read.ptx.sreg.ctaid.x
// CHECK-NOT:   unrealized_conversion_cast
// CHECK-NOT:   gpu.
// CHECK:       llvm.store %{{.*}} : f32, !llvm.ptr
// CHECK-NEXT:  llvm.return

// One that a generator made is not looked into.

// CHECK-LABEL: llvm.func @generated(
// CHECK-SAME:  attributes {fp8_gpu.math = #fp8_gpu.math<approximate>, nvvm.kernel}
// CHECK-NEXT:  %[[X:.+]] = llvm.load
// CHECK-NEXT:  %[[Y:.+]] = arith.addf %[[X]], %[[X]]
// CHECK-NEXT:  llvm.store %[[Y]]
gpu.module @fp8_kernels {
  gpu.func @outlined(%y: memref<256xf32>, %x: f32) kernel {
    %i = gpu.block_id x
    memref.store %x, %y[%i] : memref<256xf32>
    gpu.return
  }
  llvm.func @generated(%p: !llvm.ptr<1>) attributes {fp8_gpu.math = #fp8_gpu.math<approximate>, nvvm.kernel} {
    %x = llvm.load %p : !llvm.ptr<1> -> f32
    %y = arith.addf %x, %x : f32
    llvm.store %y, %p : f32, !llvm.ptr<1>
    llvm.return
  }
}

// A module without either stays as it is.

// CHECK:      gpu.module @empty {
// CHECK-NEXT: }
gpu.module @empty {
}
