// RUN: rm -rf %t && mkdir %t
// RUN: fp8-compile %s -o %t/libcalls.so
// RUN: fp8-compile %S/Inputs/other.mlir -o %t/other.so
// RUN: %c_compiler -std=c11 -Wall -Wextra -pedantic -Werror -I%t -I%fp8_source/include -D_GNU_SOURCE %S/Inputs/call.c %t/libcalls.so %t/other.so -L%fp8_build/lib -lfp8rt -Wl,-rpath,%fp8_build/lib -Wl,-rpath,%t -o %t/call-c
// RUN: %t/call-c | FileCheck %s
// RUN: %cxx_compiler -x c++ -std=c++17 -Wall -Wextra -pedantic -Werror -I%t -I%fp8_source/include %S/Inputs/call.c -x none %t/libcalls.so %t/other.so -L%fp8_build/lib -lfp8rt -Wl,-rpath,%fp8_build/lib -Wl,-rpath,%t -o %t/call-cxx
// RUN: %t/call-cxx | FileCheck %s
// UNSUPPORTED: sanitizers

// The compiler and the linker find the program by its header and its name.

// CHECK: calls_add: 0: 11 22 33 44
// CHECK-NEXT: calls_several: 0: 3 of 2, 2.5, 1
// CHECK-NEXT: calls_scale: 0: 4080
// CHECK-NEXT: calls_fill: 0: 7 7
// CHECK-NEXT: calls_nothing: 0

// Tensors among the results are the caller's, each by itself; those among the
// arguments stay as they were.

// CHECK-NEXT: calls_share: 0: 11 22, 11, 22
// CHECK-NEXT: calls_keep: 0: 11 22 of 10 20, 5 20 of 10 20

// Two programs of one process have each their own description.

// CHECK-NEXT: other_add: 0: -9
// CHECK-NEXT: programs calls and other

// What does not fit is an error, and the process goes on.

// CHECK-NEXT: null: 1: expected argument 'x' of 'add' to be given, but got null
// CHECK-NEXT: no data: 1: expected argument 'y' of 'add' to have data, but got null
// CHECK-NEXT: no place: 1: expected a place for result 'result0' of 'add', but got null
// CHECK-NEXT: size: 1: expected argument 'x' of 'add' to have size 4 in dimension 0, but got 3
// CHECK-NEXT: negative: 1: expected argument 'x' of 'join' to have size 0 up in dimension 0, but got -1
// CHECK-NEXT: offset: 1: expected argument 'x' of 'add' to have offset 0, but got 1
// CHECK-NEXT: order: 1: expected argument 'm' of 'fill' to be in row-major order, with stride 1 in dimension 0, but got 2
// CHECK-NEXT: alignment: 1: expected argument 'x' of 'add' to be aligned to 4 bytes, but got 0x{{.*}}2
// CHECK-NEXT: sizes: 1: expected the tensors of one pass over memory to have the same extents, but dimension #0 of operand #1 differs
// CHECK: calls_join: 0: 5 7
// CHECK-NEXT: none of 0: 0

func.func @add(%x: tensor<4xf32> {fp8.name = "x"}, %y: tensor<4xf32> {fp8.name = "y"}) -> tensor<4xf32> {
  %0 = arith.addf %x, %y : tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func @several(%x: tensor<?xf32>, %s: f64) -> (tensor<?xf32>, f64, i1) {
  %0 = arith.addf %x, %x : tensor<?xf32>
  %true = arith.constant true
  return %0, %s, %true : tensor<?xf32>, f64, i1
}
func.func @scale(%s: bf16, %by: f32) -> bf16 {
  %0 = arith.truncf %by : f32 to bf16
  %1 = arith.mulf %s, %0 : bf16
  return %1 : bf16
}
func.func @fill(%m: memref<2xf32> {fp8.name = "m"}, %v: f32 {fp8.name = "int"}) {
  linalg.fill ins(%v : f32) outs(%m : memref<2xf32>)
  return
}
func.func @nothing() {
  return
}
func.func @share(%x: tensor<2xf32>, %y: tensor<2xf32>) -> (tensor<2xf32>, tensor<1xf32>, tensor<2xf32>) {
  %0 = arith.addf %x, %y : tensor<2xf32>
  %1 = tensor.extract_slice %0[0] [1] [1] : tensor<2xf32> to tensor<1xf32>
  return %0, %1, %0 : tensor<2xf32>, tensor<1xf32>, tensor<2xf32>
}
func.func @keep(%x: tensor<2xf32>, %y: tensor<2xf32>, %v: f32) -> (tensor<2xf32>, tensor<2xf32>) {
  %sum = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%x : tensor<2xf32>) outs(%y : tensor<2xf32>) {
  ^bb0(%a: f32, %b: f32):
    %0 = arith.addf %a, %b : f32
    linalg.yield %0 : f32
  } -> tensor<2xf32>
  %zero = arith.constant 0 : index
  %inserted = tensor.insert %v into %y[%zero] : tensor<2xf32>
  return %sum, %inserted : tensor<2xf32>, tensor<2xf32>
}
func.func @join(%x: tensor<?xf32> {fp8.name = "x"}, %y: tensor<?xf32>) -> tensor<?xf32> {
  %0 = linalg.add ins(%x, %y : tensor<?xf32>, tensor<?xf32>) outs(%x : tensor<?xf32>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}
