// RUN: fp8-opt %s | fp8-opt | FileCheck %s
// RUN: fp8-opt %s | not grep '[^ ]  '

// CHECK-DAG: #[[DOUBLE:.*]] = #fp8_gpu.launch<arguments = [#fp8_gpu.argument<name = "x",
// CHECK-DAG: #[[SUMS:.*]] = #fp8_gpu.launch<arguments = [#fp8_gpu.argument<name = "y",
#double = #fp8_gpu.launch<
  arguments = [#fp8_gpu.argument<name = "x", element = f32, rank = 1, access = read, alignment = 4>,
               #fp8_gpu.argument<name = "y", element = f32, rank = 1, access = write, alignment = 4>],
  extents = [#fp8_gpu.extent<"n", 0, 0>],
  params = [#fp8_gpu.pointer<0>, #fp8_gpu.pointer<1>,
            #fp8_gpu.value<affine_map<()[s0] -> (s0)> : i32>],
  grid = affine_map<()[s0] -> (s0 ceildiv 256)>, block = 256>
#sums = #fp8_gpu.launch<
  arguments = [#fp8_gpu.argument<name = "y", element = f32, rank = 2, access = write, alignment = 4>,
               #fp8_gpu.argument<name = "sum", element = f64, rank = 0, access = update, alignment = 8>],
  extents = [],
  params = [#fp8_gpu.pointer<0>, #fp8_gpu.capture<1 : i32>, #fp8_gpu.pointer<1>, #fp8_gpu.capture<0 : f32>],
  grid = affine_map<() -> (1)>, block = 32>

// CHECK-LABEL: func.func @tensors
func.func @tensors(%x: tensor<?xf32>, %d: tensor<?xf32>) -> tensor<?xf32> {
  // CHECK: fp8_gpu.launch @kernels::@double #[[DOUBLE]] ins(%{{.*}} : tensor<?xf32>) outs(%{{.*}} : tensor<?xf32>) -> tensor<?xf32>
  %y = fp8_gpu.launch @kernels::@double #double ins(%x : tensor<?xf32>)
      outs(%d : tensor<?xf32>) -> tensor<?xf32>
  return %y : tensor<?xf32>
}

// CHECK-LABEL: func.func @memrefs
func.func @memrefs(%x: memref<8xf32, strided<[2], offset: ?>>, %y: memref<?xf32>) {
  // CHECK: fp8_gpu.launch @kernels::@double #[[DOUBLE]] ins(%{{.*}} : memref<8xf32, strided<[2], offset: ?>>) outs(%{{.*}} : memref<?xf32>){{$}}
  fp8_gpu.launch @kernels::@double #double ins(%x : memref<8xf32, strided<[2], offset: ?>>)
      outs(%y : memref<?xf32>)
  return
}

// Captures are given in the order of their numbers; attributes are kept.

// CHECK-LABEL: func.func @captures
func.func @captures(%a: f32, %b: i32, %y: tensor<2x3xf32>, %sum: tensor<f64>) -> tensor<f64> {
  // CHECK: fp8_gpu.launch @kernels::@sums #[[SUMS]] captures(%{{.*}}, %{{.*}} : f32, i32) outs(%{{.*}}, %{{.*}} : tensor<2x3xf32>, tensor<f64>) {note} -> tensor<2x3xf32>, tensor<f64>
  %0:2 = fp8_gpu.launch @kernels::@sums #sums captures(%a, %b : f32, i32)
      outs(%y, %sum : tensor<2x3xf32>, tensor<f64>) {note} -> tensor<2x3xf32>, tensor<f64>
  return %0#1 : tensor<f64>
}

// The kernel may be in the program; then it is the one that is launched.

// CHECK: llvm.func @double(!llvm.ptr) attributes {fp8_gpu.launch = #[[DOUBLE]]}
gpu.module @kernels {
  llvm.func @double(!llvm.ptr) attributes {fp8_gpu.launch = #double}
}
