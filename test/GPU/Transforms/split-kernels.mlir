// RUN: fp8-opt %s --fp8-split-kernels | FileCheck %s
// RUN: fp8-opt %s --fp8-split-kernels --fp8-split-kernels | FileCheck %s

// Each kernel has a module, in order, with what it refers to and the attributes
// of the module that it was in; names that are taken are left alone.

module attributes {gpu.container_module} {
  // CHECK-LABEL: func.func @launches
  // CHECK: gpu.launch_func @kernels::@first
  // CHECK: gpu.launch_func @kernels_1::@second
  // CHECK: gpu.launch_func @kernels_2::@third
  // CHECK: gpu.launch_func @kernels_1::@second
  // CHECK: gpu.launch_func @alone::@kernel
  func.func @launches(%x: memref<4xf32>) {
    %c1 = arith.constant 1 : index
    gpu.launch_func @kernels::@first blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%x : memref<4xf32>)
    gpu.launch_func @kernels::@second blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1)
    gpu.launch_func @kernels::@third blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1)
    gpu.launch_func @kernels::@second blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1)
    gpu.launch_func @alone::@kernel blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1)
    return
  }
  // CHECK: func.func private @kernels_0
  func.func private @kernels_0()

  // CHECK: gpu.module @kernels attributes {some}
  // CHECK-NEXT: llvm.mlir.global external @shared
  // CHECK-NEXT: llvm.mlir.global internal constant @table
  // CHECK-NEXT: llvm.func @pick
  // CHECK: gpu.func @first
  // CHECK-NOT: func

  // CHECK: gpu.module @kernels_1 attributes {some}
  // CHECK-NEXT: llvm.mlir.global external @shared
  // CHECK-NEXT: llvm.func @second
  // CHECK-NOT: func

  // Through a function that is no kernel.

  // CHECK: gpu.module @kernels_2 attributes {some}
  // CHECK-DAG: llvm.func @pick
  // CHECK-DAG: llvm.mlir.global internal constant @table
  // CHECK: llvm.func @third
  // CHECK-NOT: func
  // CHECK: gpu.module @alone
  gpu.module @kernels attributes {some} {
    llvm.mlir.global external @shared() {addr_space = 3 : i32, alignment = 1024 : i64} : !llvm.array<0 x i8>
    llvm.mlir.global internal constant @table(7 : i32) : i32
    llvm.func @pick() -> !llvm.ptr {
      %0 = llvm.mlir.addressof @table : !llvm.ptr
      llvm.return %0 : !llvm.ptr
    }
    gpu.func @first(%x: memref<4xf32>) kernel {
      gpu.return
    }
    llvm.func @second() attributes {gpu.kernel, nvvm.kernel} {
      %0 = llvm.mlir.addressof @shared : !llvm.ptr<3>
      llvm.return
    }
    llvm.func @third() attributes {gpu.kernel, nvvm.kernel} {
      %0 = llvm.call @pick() : () -> !llvm.ptr
      llvm.return
    }
  }
  gpu.module @alone {
    gpu.func @kernel() kernel {
      gpu.return
    }
  }
}
