// RUN: split-file %s %t
// RUN: toy-opt %t/program.mlir --fp8-set-target=chip=sm_80 --fp8-select-kernels="table=%t/table.json" --verify-diagnostics | FileCheck %s

// A table knows kernels by their kind and what describes them, whatever that is.

// CHECK-LABEL: func.func @known
// CHECK:       toy.scale {{.*}} {fp8_gpu.config = #toy.scale_config<block = 128>}
// CHECK-LABEL: func.func @other_extents
// CHECK:       toy.scale {{.*}} {fp8_gpu.config = #toy.scale_config<block = 64>}
// CHECK-LABEL: func.func @stale
// CHECK:       toy.scale {{.*}} {fp8_gpu.config = #toy.scale_config<block = 64>}
// CHECK-LABEL: func.func @other_config
// CHECK:       toy.scale {{.*}} {fp8_gpu.config = #toy.scale_config<block = 64>}

//--- program.mlir
func.func @known(%x: tensor<4x8xf32>, %s: f32) -> tensor<4x8xf32> {
  %0 = toy.scale %x by %s : tensor<4x8xf32>, f32
  return %0 : tensor<4x8xf32>
}
func.func @other_extents(%x: tensor<8x4xf32>, %s: f32) -> tensor<8x4xf32> {
  %0 = toy.scale %x by %s : tensor<8x4xf32>, f32
  return %0 : tensor<8x4xf32>
}
func.func @stale(%x: tensor<2xf32>, %s: f32) -> tensor<2xf32> {
  // expected-remark @+1 {{its config is ignored: expected block to be a multiple of 32 up to 1024, but got 48}}
  %0 = toy.scale %x by %s : tensor<2xf32>, f32
  return %0 : tensor<2xf32>
}
func.func @other_config(%x: tensor<3xf32>, %s: f32) -> tensor<3xf32> {
  // expected-remark @+1 {{its config is ignored: expected a #toy.scale_config, but got #fp8_sm90.gemm}}
  %0 = toy.scale %x by %s : tensor<3xf32>, f32
  return %0 : tensor<3xf32>
}

//--- table.json
{"version": 2, "target": "sm_80", "device": "a toy", "kernels": [
  {"kernel": "toy_scale f32 4x8", "microseconds": 1, "config": "#toy.scale_config<block = 128>"},
  {"kernel": "matmul f32 8x4", "microseconds": 1, "config": "#toy.scale_config<block = 128>"},
  {"kernel": "toy_scale f32 2", "microseconds": 1, "config": "#toy.scale_config<block = 48>"},
  {"kernel": "toy_scale f32 3", "microseconds": 1, "config": "#fp8_sm90.gemm<tile_m = 64, tile_n = 64, stages = 3, consumers = 1>"}]}
