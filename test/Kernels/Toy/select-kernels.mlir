// RUN: toy-opt %s --fp8-set-target=chip=sm_80 --fp8-select-kernels --split-input-file --verify-diagnostics | FileCheck %s
// RUN: toy-opt %s --fp8-set-target=chip=sm_80 --fp8-select-kernels=every-candidate --split-input-file | FileCheck %s --check-prefix=EVERY

// An architecture that the libraries do not know, for a kind of kernels that they
// do not know either, chooses by what its generator says a kernel costs.

// CHECK: #target = #fp8_gpu.target<chip = "sm_80", {{.*}}multiprocessors = 4,
// CHECK-LABEL: func.func @small
// CHECK:       toy.scale {{.*}} {fp8_gpu.config = #toy.scale_config<block = 64>}
// EVERY-LABEL: func.func @small
// EVERY:       toy.scale {{.*}} {fp8_gpu.config = #toy.scale_config<block = 256>}
// EVERY-NEXT:  %[[FIRST:.+]] = toy.scale {{.*}} {fp8_gpu.config = #toy.scale_config<block = 64>}
// EVERY-NEXT:  return %[[FIRST]]
func.func @small(%x: tensor<4x8xf32>, %s: f32) -> tensor<4x8xf32> {
  %0 = toy.scale %x by %s : tensor<4x8xf32>, f32
  return %0 : tensor<4x8xf32>
}

// CHECK-LABEL: func.func @large
// CHECK:       toy.scale {{.*}} {fp8_gpu.config = #toy.scale_config<block = 256>}
func.func @large(%x: tensor<1024x1024xf32>, %s: f32) -> tensor<1024x1024xf32> {
  %0 = toy.scale %x by %s : tensor<1024x1024xf32>, f32
  return %0 : tensor<1024x1024xf32>
}

// Unknown extents take the first.

// CHECK-LABEL: func.func @unknown
// CHECK:       toy.scale {{.*}} {fp8_gpu.config = #toy.scale_config<block = 64>}
func.func @unknown(%x: tensor<1024x?xf32>, %s: f32) -> tensor<1024x?xf32> {
  %0 = toy.scale %x by %s : tensor<1024x?xf32>, f32
  return %0 : tensor<1024x?xf32>
}

// CHECK-LABEL: func.func @pinned
// CHECK:       toy.scale {{.*}} {fp8_gpu.config = #toy.scale_config<block = 96>}
func.func @pinned(%x: tensor<4x8xf32>, %s: f32) -> tensor<4x8xf32> {
  %0 = toy.scale %x by %s {fp8_gpu.config = #toy.scale_config<block = 96>} : tensor<4x8xf32>, f32
  return %0 : tensor<4x8xf32>
}

// -----

// What no kernel computes stays, and so does what this architecture has no
// kernels of.

// CHECK-LABEL: func.func @no_kernel
// CHECK-NOT:   fp8_gpu.config
func.func @no_kernel(%x: tensor<4x8xf64>, %s: f32) -> tensor<4x8xf64> {
  // expected-remark @+1 {{no kernel: expected elements and a factor of f32, but got tensor<4x8xf64> and f32}}
  %0 = toy.scale %x by %s : tensor<4x8xf64>, f32
  return %0 : tensor<4x8xf64>
}

// CHECK-LABEL: func.func @other_kind
// CHECK-NOT:   fp8_gpu.config
func.func @other_kind(%a: tensor<64x64xbf16>) -> tensor<64x64xf32> {
  // expected-remark @+1 {{no kernel: expected an architecture with matmul kernels, but got sm_80}}
  %0 = fp8.matmul %a, %a accumulate = fast : tensor<64x64xbf16>, tensor<64x64xbf16> -> tensor<64x64xf32>
  return %0 : tensor<64x64xf32>
}

// -----

// The numbers of the target are those of the module, not of the architecture.

// CHECK-LABEL: func.func @fewer_multiprocessors
// CHECK:       toy.scale {{.*}} {fp8_gpu.config = #toy.scale_config<block = 256>}
module attributes {fp8_gpu.target = #fp8_gpu.target<
    chip = "sm_80", compute_capability = 80, features = "+ptx80", multiprocessors = 1,
    shared_bytes = 166912, registers = 65536, mma_rate = 1, l2_rate = 1, memory_rate = 1>} {
  func.func @fewer_multiprocessors(%x: tensor<16x16xf32>, %s: f32) -> tensor<16x16xf32> {
    %0 = toy.scale %x by %s : tensor<16x16xf32>, f32
    return %0 : tensor<16x16xf32>
  }
}

// -----

// CHECK-LABEL: func.func @more_multiprocessors
// CHECK:       toy.scale {{.*}} {fp8_gpu.config = #toy.scale_config<block = 64>}
func.func @more_multiprocessors(%x: tensor<16x16xf32>, %s: f32) -> tensor<16x16xf32> {
  %0 = toy.scale %x by %s : tensor<16x16xf32>, f32
  return %0 : tensor<16x16xf32>
}
