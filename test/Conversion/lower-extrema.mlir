// RUN: fp8-opt %s --pass-pipeline="builtin.module(func.func(fp8-lower-extrema))" | FileCheck %s

// CHECK-LABEL: func.func @scalars
// CHECK-NEXT:    %[[MOST:.+]] = llvm.intr.maximum(%arg0, %arg1) : (f32, f32) -> f32
// CHECK-NEXT:    %[[LEAST:.+]] = llvm.intr.minimum(%[[MOST]], %arg1) : (f32, f32) -> f32
func.func @scalars(%x: f32, %y: f32) -> f32 {
  %0 = arith.maximumf %x, %y : f32
  %1 = arith.minimumf %0, %y : f32
  return %1 : f32
}

// CHECK-LABEL: func.func @vectors
// CHECK:         llvm.intr.maximum(%arg0, %arg0) : (vector<4xf16>, vector<4xf16>) -> vector<4xf16>
func.func @vectors(%x: vector<4xf16>) -> vector<4xf16> {
  %0 = arith.maximumf %x, %x : vector<4xf16>
  return %0 : vector<4xf16>
}

// What LLVM has no type for stays.

// CHECK-LABEL: func.func @tensors
// CHECK:         arith.maximumf
func.func @tensors(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = arith.maximumf %x, %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}
