// UNSUPPORTED: sanitizers
// RUN: mlir-opt %s --pass-pipeline="builtin.module(gpu.module(convert-gpu-to-nvvm),gpu-to-llvm,convert-func-to-llvm,convert-arith-to-llvm,finalize-memref-to-llvm,reconcile-unrealized-casts,gpu-module-to-binary{format=isa})" -o %t.mlir
// RUN: env FP8_CUDA_DRIVER=emulator mlir-runner %t.mlir -e main --entry-point-result=i32 --shared-libs=%fp8_build/lib/libfp8rt.so | FileCheck %s
// RUN: env FP8_CUDA_DRIVER=%t-nothing mlir-runner %t.mlir -e main --entry-point-result=i32 --shared-libs=%fp8_build/lib/libfp8rt.so 2>&1 | FileCheck %s --check-prefix=NONE

// What upstream's own lowering makes runs on libfp8rt: memory is allocated,
// filled and copied, and the launch passes the driver's checks. Without a driver
// the program ends too, and the host learns why.

module attributes {gpu.container_module} {
  gpu.module @kernels [#nvvm.target<chip = "sm_90">] {
    gpu.func @kernel(%x: memref<?xf32>) kernel {
      gpu.return
    }
  }

  func.func private @fp8rt_gpu_take_error() -> i32

  func.func @main() -> i32 {
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c4 = arith.constant 4 : index
    %one = arith.constant 1.0 : f32
    %host = memref.alloc(%c4) : memref<?xf32>
    %t0 = gpu.wait async
    %x, %t1 = gpu.alloc async [%t0] (%c4) : memref<?xf32>
    %t2 = gpu.memset async [%t1] %x, %one : memref<?xf32>, f32
    %t3 = gpu.launch_func async [%t2] @kernels::@kernel
        blocks in (%c4, %c1, %c1) threads in (%c1, %c1, %c1)
        args(%x : memref<?xf32>)
    %t4 = gpu.launch_func async [%t3] @kernels::@kernel
        clusters in (%c2, %c1, %c1) blocks in (%c4, %c1, %c1)
        threads in (%c1, %c1, %c1) args(%x : memref<?xf32>)
    %t5 = gpu.memcpy async [%t4] %host, %x : memref<?xf32>, memref<?xf32>
    %t6 = gpu.dealloc async [%t5] %x : memref<?xf32>
    gpu.wait [%t6]
    %status = func.call @fp8rt_gpu_take_error() : () -> i32
    %y = memref.load %host[%c1] : memref<?xf32>
    memref.dealloc %host : memref<?xf32>
    %ok = arith.fptosi %y : f32 to i32
    // 100 x status + what was filled with 1.
    %c100 = arith.constant 100 : i32
    %c0 = arith.constant 0 : i32
    %isOk = arith.cmpi eq, %status, %c0 : i32
    %shown = arith.select %isOk, %ok, %c0 : i32
    %scaled = arith.muli %status, %c100 : i32
    %sum = arith.addi %scaled, %shown : i32
    return %sum : i32
  }
}

// CHECK-NOT: fp8rt:
// CHECK:     {{^1$}}

// NONE:      fp8rt: mgpuModuleLoadJIT: expected a CUDA driver, but got none
// NONE-NOT:  fp8rt:
// NONE:      {{^1100$}}
