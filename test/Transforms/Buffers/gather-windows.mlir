// RUN: fp8-opt %s --fp8-decompose-aggregates=gather-windows=true --split-input-file | FileCheck %s

// A pad is one loop: neither borders nor a copy. Dimensions that are whole are one
// with those before; what is read has a place in any case.

// CHECK-LABEL: func.func @pad
// CHECK-SAME:    %[[X:.+]]: tensor<2x3x5x7xbf16>
// CHECK-DAG:     %[[ZERO:.+]] = arith.constant 0.000000e+00 : bf16
// CHECK-DAG:     %[[PART:.+]] = tensor.collapse_shape %[[X]] {{\[}}[0, 1], [2, 3]] : tensor<2x3x5x7xbf16> into tensor<6x35xbf16>
// CHECK:         %[[WHOLE:.+]] = linalg.generic {{.*}} outs(%{{.*}} : tensor<6x56xbf16>)
// CHECK:           %[[I:.+]] = linalg.index 0
// CHECK:           %[[J:.+]] = linalg.index 1
// CHECK:           %[[NUMBER:.+]] = arith.index_cast %[[J]] : index to i32
// CHECK:           %[[PLACE:.+]] = arith.subi %[[NUMBER]], %c7_i32
// CHECK:           %[[INSIDE:.+]] = arith.cmpi ult, %[[PLACE]], %c35_i32
// CHECK:           %[[OWN:.+]] = arith.minui %[[PLACE]], %c34_i32
// CHECK:           %[[K:.+]] = arith.index_castui %[[OWN]]
// CHECK:           %[[ELEMENT:.+]] = tensor.extract %[[PART]][%[[I]], %[[K]]]
// CHECK:           arith.select %[[INSIDE]], %[[ELEMENT]], %[[ZERO]]
// CHECK:         tensor.expand_shape %[[WHOLE]] {{\[}}[0, 1], [2, 3]] {{.*}} into tensor<2x3x8x7xbf16>
// CHECK-NOT:     tensor.pad
func.func @pad(%x: tensor<2x3x5x7xbf16>) -> tensor<2x3x8x7xbf16> {
  %zero = arith.constant 0.0 : bf16
  %0 = tensor.pad %x low[0, 0, 1, 0] high[0, 0, 2, 0] {
  ^bb0(%i: index, %j: index, %k: index, %l: index):
    tensor.yield %zero : bf16
  } : tensor<2x3x5x7xbf16> to tensor<2x3x8x7xbf16>
  return %0 : tensor<2x3x8x7xbf16>
}

// -----

// What is outside along the rows leaves no places along the columns.

// CHECK-LABEL: func.func @both
// CHECK:         %[[ROW:.+]] = arith.cmpi ult, %{{.*}}, %c5_i32
// CHECK:         %[[LIMIT:.+]] = arith.select %[[ROW]], %c7_i32, %c0_i32
// CHECK:         %[[INSIDE:.+]] = arith.cmpi ult, %{{.*}}, %[[LIMIT]]
// CHECK:         arith.select %[[INSIDE]]
func.func @both(%x: tensor<5x7xf32>) -> tensor<7x9xf32> {
  %zero = arith.constant 0.0 : f32
  %0 = tensor.pad %x low[1, 1] high[1, 1] {
  ^bb0(%i: index, %j: index):
    tensor.yield %zero : f32
  } : tensor<5x7xf32> to tensor<7x9xf32>
  return %0 : tensor<7x9xf32>
}

// -----

// Unknown extents, negative amounts and padding by place are upstream's, and so is
// what is computed to be padded, which is written into its place.

// CHECK-LABEL: func.func @other_pads
// CHECK-COUNT-4: tensor.pad
// CHECK-NOT:     tensor.extract {{.*}}[%
func.func @other_pads(%x: tensor<?x4xf32>, %y: tensor<4x4xf32>) -> (tensor<?x5xf32>, tensor<3x5xf32>, tensor<4x5xf32>, tensor<4x5xf32>) {
  %zero = arith.constant 0.0 : f32
  %0 = tensor.pad %x low[0, 0] high[0, 1] {
  ^bb0(%i: index, %j: index):
    tensor.yield %zero : f32
  } : tensor<?x4xf32> to tensor<?x5xf32>
  %1 = tensor.pad %y low[0, 0] high[-1, 1] {
  ^bb0(%i: index, %j: index):
    tensor.yield %zero : f32
  } : tensor<4x4xf32> to tensor<3x5xf32>
  %2 = tensor.pad %y low[0, 0] high[0, 1] {
  ^bb0(%i: index, %j: index):
    %k = arith.index_cast %j : index to i32
    %n = arith.sitofp %k : i32 to f32
    tensor.yield %n : f32
  } : tensor<4x4xf32> to tensor<4x5xf32>
  %empty = tensor.empty() : tensor<4x4xf32>
  %computed = linalg.exp ins(%y : tensor<4x4xf32>) outs(%empty : tensor<4x4xf32>) -> tensor<4x4xf32>
  %3 = tensor.pad %computed low[0, 0] high[0, 1] {
  ^bb0(%i: index, %j: index):
    tensor.yield %zero : f32
  } : tensor<4x4xf32> to tensor<4x5xf32>
  return %0, %1, %2, %3 : tensor<?x5xf32>, tensor<3x5xf32>, tensor<4x5xf32>, tensor<4x5xf32>
}

// -----

// What is written into an argument, which is the caller's: nothing is copied
// first.

// CHECK-LABEL: func.func @insert
// CHECK-SAME:    %[[INTO:.+]]: tensor<8x16xf32>, %[[X:.+]]: tensor<4x16xf32>
// CHECK-DAG:     %[[PART:.+]] = tensor.collapse_shape %[[X]] {{.*}} into tensor<64xf32>
// CHECK-DAG:     %[[ALL:.+]] = tensor.collapse_shape %[[INTO]] {{.*}} into tensor<128xf32>
// CHECK:         linalg.generic {{.*}} ins(%[[ALL]] : tensor<128xf32>)
// CHECK:           arith.subi %{{.*}}, %c32_i32
// CHECK:           tensor.extract %[[PART]]
// CHECK-NOT:     tensor.insert_slice
func.func @insert(%into: tensor<8x16xf32>, %x: tensor<4x16xf32>) -> tensor<8x16xf32> {
  %0 = tensor.insert_slice %x into %into[2, 0] [4, 16] [1, 1] : tensor<4x16xf32> into tensor<8x16xf32>
  return %0 : tensor<8x16xf32>
}

// -----

// An argument that may be written, what the program computed, few elements and
// elements apart stay what they are.

// CHECK-LABEL: func.func @other_inserts
// CHECK-COUNT-4: tensor.insert_slice
func.func @other_inserts(%into: tensor<8x16xf32> {bufferization.writable = true}, %other: tensor<8x16xf32>, %x: tensor<4x16xf32>, %y: tensor<1x1xf32>, %z: tensor<4x8xf32>)
    -> (tensor<8x16xf32>, tensor<8x16xf32>, tensor<8x16xf32>, tensor<8x16xf32>) {
  %0 = tensor.insert_slice %x into %into[2, 0] [4, 16] [1, 1] : tensor<4x16xf32> into tensor<8x16xf32>
  %empty = tensor.empty() : tensor<8x16xf32>
  %computed = linalg.exp ins(%other : tensor<8x16xf32>) outs(%empty : tensor<8x16xf32>) -> tensor<8x16xf32>
  %1 = tensor.insert_slice %x into %computed[2, 0] [4, 16] [1, 1] : tensor<4x16xf32> into tensor<8x16xf32>
  %2 = tensor.insert_slice %y into %other[2, 0] [1, 1] [1, 1] : tensor<1x1xf32> into tensor<8x16xf32>
  %3 = tensor.insert_slice %z into %other[0, 0] [4, 8] [2, 2] : tensor<4x8xf32> into tensor<8x16xf32>
  return %0, %1, %2, %3 : tensor<8x16xf32>, tensor<8x16xf32>, tensor<8x16xf32>, tensor<8x16xf32>
}
