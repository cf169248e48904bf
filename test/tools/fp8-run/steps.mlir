// RUN: %python %S/Inputs/tensors.py make %t.in x=F32:3x2:1,2,3,4,5,6 s=F32:3:10,20,30 w=F32:2:0.5 n=I64:3:2,2,2
// RUN: fp8-run %s --entry=f --inputs=%t.in --steps=3 --outputs=%t.out | count 0
// RUN: %python %S/Inputs/tensors.py show %t.out | FileCheck %s --match-full-lines

// One slice of `x`, `s` and `n` for each step, all of `w` for each; every result
// gains the dimension.

// CHECK:      same: F32 [3, 2]: 0.5 0.5 0.5 0.5 0.5 0.5
// CHECK-NEXT: scalar: F32 [3]: 10.0 20.0 30.0
// CHECK-NEXT: sized: F32 [3, 2]: 10.0 10.0 20.0 20.0 30.0 30.0
// CHECK-NEXT: y: F32 [3, 2]: 11.5 12.5 23.5 24.5 35.5 36.5
// CHECK-NOT:  {{.}}

// What is the same in every step may be all of it, and one step is a step.

// RUN: %python %S/Inputs/tensors.py make %t.same x=F32:2:1,2 s=F32::10 w=F32:2:0.5 n=I64::1
// RUN: fp8-run %s --entry=f --inputs=%t.same --steps=2 | FileCheck %s --check-prefix=SAME
// RUN: fp8-run %s --entry=f --inputs=%t.same --steps=1 | FileCheck %s --check-prefix=ONE
// SAME: {{^}}y: F32 [2, 2] min 11.5 max 12.5 values 11.5 12.5 11.5 12.5{{$}}
// ONE: {{^}}y: F32 [1, 2] min 11.5 max 12.5 values 11.5 12.5{{$}}
// ONE: {{^}}scalar: F32 [1]

// A program without results gives the memrefs that it changes, which start anew
// in every step.

// RUN: %python %S/Inputs/tensors.py make %t.add m=F32:2:1,2 s=F32:3:1,2,3
// RUN: fp8-run %s --entry=add --inputs=%t.add --steps=3 | FileCheck %s --check-prefix=ADD
// ADD: {{^}}m: F32 [3, 2] min 2 max 4 values 2 2 3 2 ...{{$}}

// Times are those of the steps.

// RUN: fp8-run %s --entry=add --inputs=%t.add --steps=3 --time | FileCheck %s --check-prefix=TIME
// TIME: run: min {{.*}} (3 runs)

func.func @f(%x: tensor<2xf32> {fp8.name = "x"}, %s: f32 {fp8.name = "s"},
             %w: tensor<2xf32> {fp8.name = "w"}, %n: index {fp8.name = "n"})
    -> (tensor<2xf32> {fp8.name = "y"}, f32 {fp8.name = "scalar"},
        tensor<?xf32> {fp8.name = "sized"}, tensor<2xf32> {fp8.name = "same"}) {
  %empty = tensor.empty() : tensor<2xf32>
  %y = linalg.generic {
      indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
      iterator_types = ["parallel"]}
      ins(%x, %w : tensor<2xf32>, tensor<2xf32>) outs(%empty : tensor<2xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %0 = arith.addf %a, %b : f32
    %1 = arith.addf %0, %s : f32
    linalg.yield %1 : f32
  } -> tensor<2xf32>
  %some = tensor.empty(%n) : tensor<?xf32>
  %sized = linalg.fill ins(%s : f32) outs(%some : tensor<?xf32>) -> tensor<?xf32>
  return %y, %s, %sized, %w : tensor<2xf32>, f32, tensor<?xf32>, tensor<2xf32>
}

func.func @add(%m: memref<2xf32> {fp8.name = "m"}, %s: f32 {fp8.name = "s"}) {
  %zero = arith.constant 0 : index
  %old = memref.load %m[%zero] : memref<2xf32>
  %sum = arith.addf %old, %s : f32
  memref.store %sum, %m[%zero] : memref<2xf32>
  return
}
