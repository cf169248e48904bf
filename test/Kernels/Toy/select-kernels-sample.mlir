// RUN: toy-opt %s --fp8-set-target=chip=sm_80 --fp8-select-kernels="every-candidate sample=2" | FileCheck %s

// Each second config of two, and the other one for the next operation.

// CHECK-LABEL: func.func @two
// CHECK-NEXT:  %[[FIRST:.+]] = toy.scale {{.*}} {fp8_gpu.config = #toy.scale_config<block = 64>}
// CHECK-NEXT:  %[[SECOND:.+]] = toy.scale %[[FIRST]] {{.*}} {fp8_gpu.config = #toy.scale_config<block = 256>}
// CHECK-NEXT:  return %[[SECOND]]
func.func @two(%x: tensor<4x8xf32>, %s: f32) -> tensor<4x8xf32> {
  %0 = toy.scale %x by %s : tensor<4x8xf32>, f32
  %1 = toy.scale %0 by %s : tensor<4x8xf32>, f32
  return %1 : tensor<4x8xf32>
}
