// RUN: fp8-opt %s --split-input-file --fp8-outline-equal-computations | FileCheck %s

!t = tensor<64x64xf32>
#id = affine_map<(i, j) -> (i, j)>

// Constants are the function's own, the memory for the result is the caller's.
// CHECK-LABEL: func.func @layers
// CHECK-SAME: (%[[X:.*]]: tensor<64x64xf32>, %[[B:.*]]: tensor<64x64xf32>)
// CHECK-NEXT: %[[E:.*]] = tensor.empty
// CHECK-NEXT: %[[Y:.*]] = call @layers_generic(%[[X]], %[[B]], %[[E]])
// CHECK-NEXT: %[[F:.*]] = tensor.empty
// CHECK-NEXT: %[[Z:.*]] = call @layers_generic(%[[Y]], %[[B]], %[[F]])
// CHECK-NEXT: return %[[Z]]
// CHECK: func.func private @layers_generic
// CHECK-SAME: (%[[X:.*]]: tensor<64x64xf32>, %[[B:.*]]: tensor<64x64xf32>, %[[E:.*]]: tensor<64x64xf32>) -> tensor<64x64xf32>
// CHECK-SAME: llvm.linkage = #llvm.linkage<internal>
// CHECK: arith.constant 2.0
// CHECK: %[[R:.*]] = linalg.generic {{.*}} ins(%[[X]], %[[B]] : {{.*}}) outs(%[[E]] :
// CHECK-NOT: fp8.name
// CHECK: return %[[R]]
func.func @layers(%x: !t, %b: !t) -> !t {
  %two = arith.constant 2.0 : f32
  %e = tensor.empty() : !t
  %y = linalg.generic {fp8.name = "first", indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x, %b : !t, !t) outs(%e : !t) {
  ^bb0(%in: f32, %bias: f32, %out: f32):
    %s = arith.mulf %in, %two : f32
    %r = arith.addf %s, %bias : f32
    linalg.yield %r : f32
  } -> !t
  %f = tensor.empty() : !t
  %z = linalg.generic {fp8.name = "second", indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%y, %b : !t, !t) outs(%f : !t) {
  ^bb0(%in: f32, %bias: f32, %out: f32):
    %s = arith.mulf %in, %two : f32
    %r = arith.addf %s, %bias : f32
    linalg.yield %r : f32
  } -> !t
  return %z : !t
}

// -----

!t = tensor<64x64xf32>
#id = affine_map<(i, j) -> (i, j)>

// Another constant, another order of operands, another type.
// CHECK-LABEL: func.func @unequal
// CHECK-NOT: call
// CHECK-NOT: func.func private
func.func @unequal(%x: !t, %y: !t, %z: tensor<64x32xf32>) -> (!t, !t, !t, tensor<64x32xf32>) {
  %two = arith.constant 2.0 : f32
  %three = arith.constant 3.0 : f32
  %e = tensor.empty() : !t
  %n = tensor.empty() : tensor<64x32xf32>
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : !t) outs(%e : !t) {
  ^bb0(%in: f32, %out: f32):
    %r = arith.subf %two, %in : f32
    linalg.yield %r : f32
  } -> !t
  %1 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : !t) outs(%e : !t) {
  ^bb0(%in: f32, %out: f32):
    %r = arith.subf %three, %in : f32
    linalg.yield %r : f32
  } -> !t
  %2 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : !t) outs(%e : !t) {
  ^bb0(%in: f32, %out: f32):
    %r = arith.subf %in, %two : f32
    linalg.yield %r : f32
  } -> !t
  %3 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%z : tensor<64x32xf32>) outs(%n : tensor<64x32xf32>) {
  ^bb0(%in: f32, %out: f32):
    %r = arith.subf %two, %in : f32
    linalg.yield %r : f32
  } -> tensor<64x32xf32>
  return %0, %1, %2, %3 : !t, !t, !t, tensor<64x32xf32>
}

// -----

// Scalars that are not constants are arguments; fills are the function's own.
// CHECK-LABEL: func.func @captured
// CHECK-SAME: %{{[a-z0-9]+}}: tensor<8x8xf32>, %[[S:[a-z0-9]+]]: f32, %[[T:[a-z0-9]+]]: f32
// CHECK: call @captured_matmul(%{{.*}}, %[[S]], %{{.*}})
// CHECK: call @captured_matmul(%{{.*}}, %[[T]], %{{.*}})
// CHECK: func.func private @captured_matmul(%{{[a-z0-9]+}}: tensor<8x8xf32>, %[[V:[a-z0-9]+]]: f32, %[[E:[a-z0-9]+]]: tensor<8x8xf32>)
// CHECK: linalg.fill ins(%[[V]] : f32) outs(%[[E]] :
// CHECK: linalg.matmul
func.func @captured(%x: tensor<8x8xf32>, %s: f32, %t: f32) -> tensor<8x8xf32> {
  %e = tensor.empty() : tensor<8x8xf32>
  %f = linalg.fill ins(%s : f32) outs(%e : tensor<8x8xf32>) -> tensor<8x8xf32>
  %y = linalg.matmul ins(%x, %x : tensor<8x8xf32>, tensor<8x8xf32>) outs(%f : tensor<8x8xf32>) -> tensor<8x8xf32>
  %g = linalg.fill ins(%t : f32) outs(%e : tensor<8x8xf32>) -> tensor<8x8xf32>
  %z = linalg.matmul ins(%y, %y : tensor<8x8xf32>, tensor<8x8xf32>) outs(%g : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %z : tensor<8x8xf32>
}

// -----

// A part of a tensor is taken in the function, for it may not be in one piece.
// CHECK-LABEL: func.func @slices
// CHECK-SAME: %[[X:.*]]: tensor<8x64xf32>, %[[Y:.*]]: tensor<8x64xf32>
// CHECK-NEXT: %[[E:.*]] = tensor.empty
// CHECK-NEXT: call @slices_exp(%[[X]], %[[E]])
// CHECK-NEXT: call @slices_exp(%[[Y]], %[[E]])
// CHECK-NEXT: return
// CHECK: func.func private @slices_exp(%[[A:.*]]: tensor<8x64xf32>, %{{.*}}: tensor<8x32xf32>)
// CHECK: tensor.extract_slice %[[A]]
func.func @slices(%x: tensor<8x64xf32>, %y: tensor<8x64xf32>) -> (tensor<8x32xf32>, tensor<8x32xf32>) {
  %e = tensor.empty() : tensor<8x32xf32>
  %a = tensor.extract_slice %x[0, 32] [8, 32] [1, 1] : tensor<8x64xf32> to tensor<8x32xf32>
  %0 = linalg.exp ins(%a : tensor<8x32xf32>) outs(%e : tensor<8x32xf32>) -> tensor<8x32xf32>
  %b = tensor.extract_slice %y[0, 32] [8, 32] [1, 1] : tensor<8x64xf32> to tensor<8x32xf32>
  %1 = linalg.exp ins(%b : tensor<8x32xf32>) outs(%e : tensor<8x32xf32>) -> tensor<8x32xf32>
  return %0, %1 : tensor<8x32xf32>, tensor<8x32xf32>
}

// -----

// Weights are not what makes two layers differ.
// CHECK-LABEL: func.func @weights
// CHECK-DAG: %[[A:.*]] = arith.constant dense<[1.0{{.*}}, 2.0{{.*}}]>
// CHECK-DAG: %[[B:.*]] = arith.constant dense<[3.0{{.*}}, 4.0{{.*}}]>
// CHECK: call @weights_add(%{{.*}}, %[[A]], %{{.*}})
// CHECK: call @weights_add(%{{.*}}, %[[B]], %{{.*}})
func.func @weights(%x: tensor<2xf32>) -> tensor<2xf32> {
  %a = arith.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %b = arith.constant dense<[3.0, 4.0]> : tensor<2xf32>
  %e = tensor.empty() : tensor<2xf32>
  %0 = linalg.add ins(%x, %a : tensor<2xf32>, tensor<2xf32>) outs(%e : tensor<2xf32>) -> tensor<2xf32>
  %1 = linalg.add ins(%0, %b : tensor<2xf32>, tensor<2xf32>) outs(%e : tensor<2xf32>) -> tensor<2xf32>
  return %1 : tensor<2xf32>
}

// -----

// What adds to a tensor, or writes a part of one, does so where it is.
// CHECK-LABEL: func.func @in_place
// CHECK-NOT: call
func.func @in_place(%x: tensor<8xf32>, %y: tensor<8xf32>, %all: tensor<16xf32>) -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) {
  %0 = linalg.exp ins(%x : tensor<8xf32>) outs(%y : tensor<8xf32>) -> tensor<8xf32>
  %1 = linalg.exp ins(%0 : tensor<8xf32>) outs(%y : tensor<8xf32>) -> tensor<8xf32>
  %a = tensor.extract_slice %all[0] [8] [1] : tensor<16xf32> to tensor<8xf32>
  %2 = linalg.abs ins(%x : tensor<8xf32>) outs(%a : tensor<8xf32>) -> tensor<8xf32>
  %3 = linalg.abs ins(%0 : tensor<8xf32>) outs(%a : tensor<8xf32>) -> tensor<8xf32>
  return %0, %1, %2, %3 : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
}

// -----

// Functions of a program share them too; loops keep their own.
// CHECK-LABEL: func.func @forward
// CHECK: call @forward_exp
// CHECK: func.func private @forward_exp(%{{.*}}: tensor<?xf32>, %{{.*}}: tensor<?xf32>)
// CHECK-LABEL: func.func @backward
// CHECK: call @forward_exp
// CHECK: scf.for
// CHECK: linalg.exp
func.func @forward(%x: tensor<?xf32>, %n: index) -> tensor<?xf32> {
  %e = tensor.empty(%n) : tensor<?xf32>
  %0 = linalg.exp ins(%x : tensor<?xf32>) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}
func.func @backward(%x: tensor<?xf32>, %n: index) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %e = tensor.empty(%n) : tensor<?xf32>
  %0 = linalg.exp ins(%x : tensor<?xf32>) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%v = %0) -> tensor<?xf32> {
    %1 = linalg.exp ins(%v : tensor<?xf32>) outs(%e : tensor<?xf32>) -> tensor<?xf32>
    scf.yield %1 : tensor<?xf32>
  }
  return %r : tensor<?xf32>
}

// -----

// How products are added up is a part of what is computed.
// CHECK-LABEL: func.func @sums
// CHECK: call @sums_contract(
// CHECK: call @sums_contract(
// CHECK: linalg.contract {{.*}}tensor_core_accumulation = array<i64: 0, 0, 128, 2, 1, 0>
// CHECK: linalg.contract {{.*}}outs(%{{.*}} : {{.*}}) -> tensor<8x8xf32>
// CHECK: func.func private @sums_contract
// CHECK: linalg.contract {{.*}}tensor_core_accumulation = array<i64: 0, 0, 128, 1, 1, 0>
#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (n, k)>
#c = affine_map<(m, n, k) -> (m, n)>
func.func @sums(%x: tensor<8x8xf32>, %y: tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8x8xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<8x8xf32>) -> tensor<8x8xf32>
  %0 = linalg.contract indexing_maps = [#a, #b, #c] {tensor_core_accumulation = array<i64: 0, 0, 128, 1, 1, 0>}
    ins(%x, %y : tensor<8x8xf32>, tensor<8x8xf32>) outs(%z : tensor<8x8xf32>) -> tensor<8x8xf32>
  %1 = linalg.contract indexing_maps = [#a, #b, #c] {tensor_core_accumulation = array<i64: 0, 0, 128, 1, 1, 0>}
    ins(%y, %x : tensor<8x8xf32>, tensor<8x8xf32>) outs(%z : tensor<8x8xf32>) -> tensor<8x8xf32>
  %2 = linalg.contract indexing_maps = [#a, #b, #c] {tensor_core_accumulation = array<i64: 0, 0, 128, 2, 1, 0>}
    ins(%x, %y : tensor<8x8xf32>, tensor<8x8xf32>) outs(%z : tensor<8x8xf32>) -> tensor<8x8xf32>
  %3 = linalg.contract indexing_maps = [#a, #b, #c]
    ins(%x, %y : tensor<8x8xf32>, tensor<8x8xf32>) outs(%z : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %0, %1, %2, %3 : tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>
}
