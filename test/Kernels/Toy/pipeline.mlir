// RUN: toy-opt %s --fp8-pipeline="recipe=none target=sm_80 to=buffers" | FileCheck %s --check-prefix=BUFFERS
// RUN: toy-opt %s --fp8-pipeline="recipe=none target=sm_80 to=kernels" | FileCheck %s --check-prefix=KERNELS
// RUN: toy-opt %s --fp8-pipeline="recipe=none target=sm_80 kernel-format=ptx" | FileCheck %s

// A kernel from outside goes all the way, beside those of loops, and the libraries
// are none the wiser.

// BUFFERS-LABEL: func.func @linear(
// BUFFERS-SAME:    %[[X:[a-z0-9]+]]: memref<40x300xf32>{{.*}}, %[[S:[a-z0-9]+]]: f32
// BUFFERS:       %[[Y:.+]] = memref.alloc()
// BUFFERS:       fp8_gpu.launch @fp8_kernels::@fp8_toy_scale_sm80_rank2_b256 #launch ins(%[[X]] : memref<40x300xf32>) captures(%[[S]] : f32) outs(%[[Y]] : memref<40x300xf32>)
// BUFFERS:       linalg.generic
// BUFFERS-NOT:   memref.copy

// KERNELS:     fp8_gpu.launch @fp8_kernels::@fp8_toy_scale_sm80_rank2_b256
// KERNELS:     gpu.launch_func @fp8_kernels::@generic_0
// KERNELS:     gpu.module @fp8_kernels
// KERNELS:     llvm.func @fp8_toy_scale_sm80_rank2_b256(
// KERNELS:     gpu.func @generic_0(
// KERNELS-NOT: gpu.module

// CHECK:       @fp8_kernels_image_data("
// CHECK-SAME:  .target sm_80
// CHECK-SAME:  .visible .entry fp8_toy_scale_sm80_rank2_b256(
// CHECK:       @fp8_kernels_fp8_toy_scale_sm80_rank2_b256_launch("{
// CHECK-SAME:  \22grid\22:[\22d0 d1 * 256 ceildiv\22],\22block\22:256
// CHECK:       @fp8_kernels_0_image_data("
// CHECK-SAME:  .visible .entry generic_0(
// CHECK-LABEL: llvm.func @linear(
// CHECK:       llvm.call @fp8rt_context_launch_kernel(
// CHECK:       llvm.call @fp8rt_context_launch(
// CHECK-NOT:   toy.
func.func @linear(%x: tensor<40x300xf32> {fp8.name = "x"}, %s: f32 {fp8.name = "s"}) -> (tensor<40x300xf32> {fp8.name = "y"}) {
  %0 = toy.scale %x by %s : tensor<40x300xf32>, f32
  %1 = arith.addf %0, %0 : tensor<40x300xf32>
  return %1 : tensor<40x300xf32>
}
