// RUN: toy-opt %s --fp8-set-target=chip=sm_80 --fp8-build-kernels | FileCheck %s

// CHECK-DAG: #[[LARGE:launch[0-9]*]] = #fp8_gpu.launch<{{.*}} block = 256>
// CHECK-DAG: #[[SMALL:launch[0-9]*]] = #fp8_gpu.launch<{{.*}} block = 64>
// CHECK-DAG: #[[VECTOR:launch[0-9]*]] = #fp8_gpu.launch<{{.*}} rank = 1, {{.*}} block = 64>

// A kernel for each rank and config, whatever the extents.

// CHECK-LABEL: func.func @program
// CHECK:       toy.scale {{.*}}fp8_gpu.kernel = @fp8_kernels::@[[S:fp8_toy_scale_sm80_rank2_b64]]}
// CHECK:       toy.scale {{.*}}fp8_gpu.kernel = @fp8_kernels::@[[L:fp8_toy_scale_sm80_rank2_b256]]}
// CHECK:       toy.scale {{.*}}fp8_gpu.kernel = @fp8_kernels::@[[S]]}
// CHECK:       toy.scale {{.*}}fp8_gpu.kernel = @fp8_kernels::@[[V:fp8_toy_scale_sm80_rank1_b64]]}
// CHECK:       toy.scale %{{.+}} by %{{.+}} : tensor<7xf32>, f32
func.func @program(%x: tensor<4x8xf32>, %y: tensor<1x1xf32>, %z: tensor<7xf32>, %s: f32)
    -> (tensor<4x8xf32>, tensor<1x1xf32>, tensor<7xf32>) {
  %0 = toy.scale %x by %s {fp8_gpu.config = #toy.scale_config<block = 64>} : tensor<4x8xf32>, f32
  %1 = toy.scale %0 by %s {fp8_gpu.config = #toy.scale_config<block = 256>} : tensor<4x8xf32>, f32
  %2 = toy.scale %y by %s {fp8_gpu.config = #toy.scale_config<block = 64>} : tensor<1x1xf32>, f32
  %3 = toy.scale %z by %s {fp8_gpu.config = #toy.scale_config<block = 64>} : tensor<7xf32>, f32
  %4 = toy.scale %3 by %s : tensor<7xf32>, f32
  return %1, %2, %4 : tensor<4x8xf32>, tensor<1x1xf32>, tensor<7xf32>
}

// CHECK-LABEL: gpu.module @fp8_kernels
// CHECK:       llvm.func @[[S]](
// CHECK-SAME:  fp8_gpu.launch = #[[SMALL]]
// CHECK:       llvm.func @[[L]](
// CHECK-SAME:  fp8_gpu.launch = #[[LARGE]]
// CHECK:       llvm.func @[[V]](
// CHECK-SAME:  fp8_gpu.launch = #[[VECTOR]]
// CHECK-NOT:   llvm.func
