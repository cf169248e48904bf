// RUN: %python %S/Inputs/tensors.py make %t.in x=F32:3:1,2,3 s=F32::0.5 arg2=I64::4
// RUN: fp8-run %s --inputs=%t.in --outputs=%t.out | count 0
// RUN: %python %S/Inputs/tensors.py show %t.out | FileCheck %s
// RUN: fp8-run %s --inputs=%t.in | FileCheck %s --check-prefix=SUMMARY

// Results are named by fp8.name or their position; `?` takes the input's size,
// and sizes of results are only known when the program has run.

// CHECK: result1: I64 []: 7
// CHECK-NEXT: result2: F32 [3]: 1.0 2.0 3.0
// CHECK-NEXT: y: F32 [2, 3]: 1.5 2.5 3.5 1.5 2.5 3.5
// CHECK-NOT: {{.}}

// SUMMARY: y: F32 [2, 3] min 1.5 max 3.5 values 1.5 2.5 3.5 1.5 ...
// SUMMARY-NEXT: result1: I64 [] min 7 max 7 values 7
// SUMMARY-NEXT: result2: F32 [3] min 1 max 3 values 1 2 3
// SUMMARY-NOT: {{.}}

func.func @main(%x: tensor<?xf32> {fp8.name = "x"},
                %s: f32 {fp8.name = "s"}, %n: index)
    -> (tensor<?x?xf32> {fp8.name = "y"}, index, tensor<?xf32>) {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %size = tensor.dim %x, %c0 : tensor<?xf32>
  %empty = tensor.empty(%c2, %size) : tensor<?x?xf32>
  %y = linalg.generic {
      indexing_maps = [affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<?xf32>) outs(%empty : tensor<?x?xf32>) {
  ^bb0(%in: f32, %out: f32):
    %sum = arith.addf %in, %s : f32
    linalg.yield %sum : f32
  } -> tensor<?x?xf32>
  %m = arith.addi %n, %size : index
  return %y, %m, %x : tensor<?x?xf32>, index, tensor<?xf32>
}
