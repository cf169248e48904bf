// RUN: fp8-opt %s --fp8-lower-dynamic-expand-shape | FileCheck %s
// RUN: fp8-opt %s --fp8-pipeline=to=host | FileCheck %s --check-prefix=HOST

// The stride of an outer dimension is the product of the inner extents.
// CHECK-DAG: #[[MUL:.*]] = affine_map<()[s0, s1] -> (s0 * s1)>
// CHECK-LABEL: func.func @three
//  CHECK-SAME: (%[[X:.*]]: memref<?xf32>, %[[A:.*]]: index, %[[B:.*]]: index, %[[C:.*]]: index)
//       CHECK: %[[BASE:.*]], %{{.*}}, %{{.*}}, %{{.*}} = memref.extract_strided_metadata %[[X]]
//       CHECK: %[[OUTER:.*]] = affine.apply #[[MUL]]()[%[[C]], %[[B]]]
//       CHECK: memref.reinterpret_cast %[[BASE]] to offset: [0], sizes: [%[[A]], %[[B]], %[[C]]], strides: [%[[OUTER]], %[[C]], 1]
//  HOST-LABEL: llvm.func @three
func.func @three(%x: memref<?xf32>, %a: index, %b: index, %c: index) -> memref<?x?x?xf32> {
  %0 = memref.expand_shape %x [[0, 1, 2]] output_shape [%a, %b, %c] : memref<?xf32> into memref<?x?x?xf32>
  return %0 : memref<?x?x?xf32>
}

// CHECK-LABEL: func.func @one
//       CHECK: memref.expand_shape
func.func @one(%x: memref<?xf32>, %a: index) -> memref<?x4xf32> {
  %0 = memref.expand_shape %x [[0, 1]] output_shape [%a, 4] : memref<?xf32> into memref<?x4xf32>
  return %0 : memref<?x4xf32>
}

// An unknown extent beside one of 0 is no quotient.
// CHECK-LABEL: func.func @beside_zero
//  CHECK-SAME: (%[[X:.*]]: memref<?x?xf32>, %[[A:.*]]: index, %[[B:.*]]: index)
//       CHECK: memref.reinterpret_cast %{{.*}} to offset: [0], sizes: [%[[A]], 0, %[[B]]], strides: [%c0, %{{.*}}, 1]
//  HOST-LABEL: llvm.func @beside_zero
func.func @beside_zero(%x: memref<?x?xf32>, %a: index, %b: index) -> memref<?x0x?xf32> {
  %0 = memref.expand_shape %x [[0, 1], [2]] output_shape [%a, 0, %b] : memref<?x?xf32> into memref<?x0x?xf32>
  return %0 : memref<?x0x?xf32>
}
