// RUN: fp8-opt %s --fp8-pipeline="recipe=none to=host" | FileCheck %s

// The memory that a call returns is freed once, by its caller, behind all that
// reads it; that a program freed it by its descriptor makes no difference.
// CHECK-LABEL: llvm.func @f(
// CHECK: llvm.call @make(
// CHECK: llvm.fadd
// CHECK: llvm.call @free(
// CHECK-NOT: llvm.call @free(
func.func @make(%n: index, %f: f32) -> memref<?xf32> {
  %a = memref.alloc(%n) : memref<?xf32>
  linalg.fill ins(%f : f32) outs(%a : memref<?xf32>)
  return %a : memref<?xf32>
}
func.func private @same(%x: memref<?xf32>) -> memref<?xf32> {
  return %x : memref<?xf32>
}
func.func @f(%x: tensor<8xf32>) -> tensor<8xf32> {
  %c8 = arith.constant 8 : index
  %one = arith.constant 1.0 : f32
  %a = func.call @make(%c8, %one) : (index, f32) -> memref<?xf32>
  %s = func.call @same(%a) : (memref<?xf32>) -> memref<?xf32>
  %t = bufferization.to_tensor %s restrict : memref<?xf32> to tensor<?xf32>
  %u = tensor.cast %t : tensor<?xf32> to tensor<8xf32>
  %e = tensor.empty() : tensor<8xf32>
  %y = linalg.add ins(%x, %u : tensor<8xf32>, tensor<8xf32>) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  %base, %off, %size, %stride = memref.extract_strided_metadata %a : memref<?xf32> -> memref<f32>, index, index, index
  memref.dealloc %base : memref<f32>
  return %y : tensor<8xf32>
}
