// RUN: fp8-opt %s --fp8-merge-kernels | FileCheck %s

module attributes {gpu.container_module} {
  // CHECK-LABEL: func.func @launches
  // CHECK: gpu.launch_func @kernels::@add
  // CHECK: gpu.launch_func @kernels::@add blocks
  // CHECK: gpu.launch_func @kernels::@another_operation
  // CHECK: gpu.launch_func @kernels::@another_operand
  // CHECK: gpu.launch_func @kernels::@another_attribute
  // CHECK: gpu.launch_func @kernels::@another_block_size
  // CHECK: gpu.launch_func @kernels::@another_type
  // CHECK: gpu.launch_func @others::@add
  func.func @launches(%x: memref<4xf32>, %y: memref<f32>) {
    %c1 = arith.constant 1 : index
    gpu.launch_func @kernels::@add blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%x : memref<4xf32>)
    gpu.launch_func @kernels::@add_again blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%x : memref<4xf32>)
    gpu.launch_func @kernels::@another_operation blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%x : memref<4xf32>)
    gpu.launch_func @kernels::@another_operand blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%x : memref<4xf32>)
    gpu.launch_func @kernels::@another_attribute blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%x : memref<4xf32>)
    gpu.launch_func @kernels::@another_block_size blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%x : memref<4xf32>)
    gpu.launch_func @kernels::@another_type blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%y : memref<f32>)
    gpu.launch_func @others::@add blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%x : memref<4xf32>)
    return
  }

  // CHECK: gpu.module @kernels
  // CHECK-NOT: @add_again
  // CHECK: gpu.module @others
  gpu.module @kernels {
    gpu.func @add(%x: memref<4xf32>) kernel {
      %c0 = arith.constant 0 : index
      %0 = memref.load %x[%c0] : memref<4xf32>
      %1 = arith.addf %0, %0 : f32
      %2 = arith.addf %1, %0 : f32
      memref.store %2, %x[%c0] : memref<4xf32>
      gpu.return
    }
    gpu.func @add_again(%y: memref<4xf32>) kernel {
      %zero = arith.constant 0 : index loc("elsewhere")
      %0 = memref.load %y[%zero] : memref<4xf32>
      %1 = arith.addf %0, %0 : f32
      %2 = arith.addf %1, %0 : f32
      memref.store %2, %y[%zero] : memref<4xf32>
      gpu.return
    }
    gpu.func @another_operation(%x: memref<4xf32>) kernel {
      %c0 = arith.constant 0 : index
      %0 = memref.load %x[%c0] : memref<4xf32>
      %1 = arith.addf %0, %0 : f32
      %2 = arith.subf %1, %0 : f32
      memref.store %2, %x[%c0] : memref<4xf32>
      gpu.return
    }
    gpu.func @another_operand(%x: memref<4xf32>) kernel {
      %c0 = arith.constant 0 : index
      %0 = memref.load %x[%c0] : memref<4xf32>
      %1 = arith.addf %0, %0 : f32
      %2 = arith.addf %1, %1 : f32
      memref.store %2, %x[%c0] : memref<4xf32>
      gpu.return
    }
    gpu.func @another_attribute(%x: memref<4xf32>) kernel {
      %c1 = arith.constant 1 : index
      %0 = memref.load %x[%c1] : memref<4xf32>
      %1 = arith.addf %0, %0 : f32
      %2 = arith.addf %1, %0 : f32
      memref.store %2, %x[%c1] : memref<4xf32>
      gpu.return
    }
    gpu.func @another_block_size(%x: memref<4xf32>) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
      %c0 = arith.constant 0 : index
      %0 = memref.load %x[%c0] : memref<4xf32>
      %1 = arith.addf %0, %0 : f32
      %2 = arith.addf %1, %0 : f32
      memref.store %2, %x[%c0] : memref<4xf32>
      gpu.return
    }
    gpu.func @another_type(%x: memref<f32>) kernel {
      gpu.return
    }
  }
  gpu.module @others {
    gpu.func @add(%x: memref<4xf32>) kernel {
      %c0 = arith.constant 0 : index
      %0 = memref.load %x[%c0] : memref<4xf32>
      %1 = arith.addf %0, %0 : f32
      %2 = arith.addf %1, %0 : f32
      memref.store %2, %x[%c0] : memref<4xf32>
      gpu.return
    }
  }
}
