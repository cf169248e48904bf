// RUN: not fp8-run %s --entry=complex 2>&1 | FileCheck %s --check-prefix=COMPLEX
// RUN: not fp8-run %s --entry=unranked 2>&1 | FileCheck %s --check-prefix=UNRANKED
// RUN: not fp8-run %s --entry=i4 2>&1 | FileCheck %s --check-prefix=I4
// RUN: not fp8-run %s --entry=vector 2>&1 | FileCheck %s --check-prefix=VECTOR
// RUN: not fp8-run %s --entry=result 2>&1 | FileCheck %s --check-prefix=RESULT
// RUN: not fp8-run %s --entry=transposed 2>&1 | FileCheck %s --check-prefix=TRANSPOSED
// RUN: not fp8-run %s --entry=strided 2>&1 | FileCheck %s --check-prefix=STRIDED
// RUN: not fp8-run %s --entry=space 2>&1 | FileCheck %s --check-prefix=SPACE
// RUN: not fp8-run %s --entry=encoding 2>&1 | FileCheck %s --check-prefix=ENCODING
// RUN: not fp8-run %s --entry=twice 2>&1 | FileCheck %s --check-prefix=TWICE

// COMPLEX: [[@LINE+1]]:1: error: expected argument 'z' to be a tensor, memref or scalar of f8E4M3FN, f8E5M2, f4E2M1FN, {{.*}} or index, but got 'tensor<2xcomplex<f32>>'
func.func @complex(%z: tensor<2xcomplex<f32>> {fp8.name = "z"}) {
  return
}

// UNRANKED: error: expected argument 'arg1' to have a rank, but got 'tensor<*xf32>'
func.func @unranked(%x: f32, %y: tensor<*xf32>) {
  return
}

// I4: error: expected argument 'arg0' to be a tensor, {{.*}}, but got 'tensor<2xi4>'
func.func @i4(%x: tensor<2xi4>) {
  return
}

// VECTOR: error: expected argument 'arg0' to be a tensor, {{.*}}, but got 'vector<4xf32>'
func.func @vector(%x: vector<4xf32>) {
  return
}

// RESULT: error: expected result 'result0' to be a tensor, {{.*}}, but got 'i128'
func.func @result() -> i128 {
  %c = arith.constant 0 : i128
  return %c : i128
}

// TRANSPOSED: error: expected argument 'arg0' to be in row-major order and the default memory space, but got 'memref<2x3xf32, strided<[1, 2]>>'
func.func @transposed(%x: memref<2x3xf32, strided<[1, 2]>>) {
  return
}

// STRIDED: error: expected result 'result0' to be in row-major order
func.func @strided(%x: memref<4xf32>) -> memref<2xf32, strided<[2]>> {
  %even = memref.subview %x[0] [2] [2]
      : memref<4xf32> to memref<2xf32, strided<[2]>>
  return %even : memref<2xf32, strided<[2]>>
}

// SPACE: error: expected argument 'arg0' to be in row-major order and the default memory space, but got 'memref<2xf32, 3>'
func.func @space(%x: memref<2xf32, 3>) {
  return
}

// ENCODING: error: expected argument 'arg0' to have no encoding, but got 'tensor<2xf32, 1 : i32>'
func.func @encoding(%x: tensor<2xf32, 1 : i32>) {
  return
}

// TWICE: error: expected names of arguments to be unique, but got 'x' twice
func.func @twice(%x: f32 {fp8.name = "x"}, %y: f32 {fp8.name = "x"}) {
  return
}
