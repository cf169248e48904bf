// RUN: fp8-opt %s --canonicalize --cse | FileCheck %s

#launch = #fp8_gpu.launch<
  arguments = [#fp8_gpu.argument<name = "x", element = f32, rank = 1, access = read, alignment = 4>,
               #fp8_gpu.argument<name = "y", element = f32, rank = 1, access = write, alignment = 4>],
  extents = [], params = [], grid = affine_map<() -> (1)>, block = 32>

// On tensors a launch is a function of its operands: what nobody uses goes, and
// what is asked for twice is computed once.

// CHECK-LABEL: func.func @tensors
// CHECK-NEXT:  %[[Y:.+]] = fp8_gpu.launch
// CHECK-NEXT:  return %[[Y]], %[[Y]]
func.func @tensors(%x: tensor<8xf32>, %d: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %0 = fp8_gpu.launch @k #launch ins(%x : tensor<8xf32>) outs(%d : tensor<8xf32>) -> tensor<8xf32>
  %1 = fp8_gpu.launch @k #launch ins(%x : tensor<8xf32>) outs(%d : tensor<8xf32>) -> tensor<8xf32>
  %2 = fp8_gpu.launch @k #launch ins(%d : tensor<8xf32>) outs(%d : tensor<8xf32>) -> tensor<8xf32>
  return %0, %1 : tensor<8xf32>, tensor<8xf32>
}

// On memrefs it writes.

// CHECK-LABEL: func.func @memrefs
// CHECK:       %[[BEFORE:.+]] = memref.load
// CHECK:       fp8_gpu.launch
// CHECK:       fp8_gpu.launch
// CHECK:       %[[AFTER:.+]] = memref.load
// CHECK:       return %[[BEFORE]], %[[AFTER]]
func.func @memrefs(%x: memref<8xf32>, %y: memref<8xf32>) -> (f32, f32) {
  %c0 = arith.constant 0 : index
  %before = memref.load %y[%c0] : memref<8xf32>
  fp8_gpu.launch @k #launch ins(%x : memref<8xf32>) outs(%y : memref<8xf32>)
  fp8_gpu.launch @k #launch ins(%x : memref<8xf32>) outs(%y : memref<8xf32>)
  %after = memref.load %y[%c0] : memref<8xf32>
  return %before, %after : f32, f32
}
