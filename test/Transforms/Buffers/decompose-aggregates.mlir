// RUN: fp8-opt %s --fp8-decompose-aggregates --split-input-file | FileCheck %s

// CHECK-LABEL: func.func @softmax
// CHECK-NOT: linalg.softmax
// CHECK: arith.maxnumf
// CHECK: math.exp
// CHECK: arith.divf
func.func @softmax(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %empty = tensor.empty() : tensor<4x8xf32>
  %0 = linalg.softmax dimension(1) ins(%x : tensor<4x8xf32>) outs(%empty : tensor<4x8xf32>) -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}

// -----

// CHECK-LABEL: func.func @pack_with_padding
// CHECK: tensor.pad %{{.*}} low[0, 0] high[4, 4]
// CHECK: tensor.expand_shape
// CHECK: linalg.transpose {{.*}} permutation = [0, 2, 1, 3]
// CHECK-NOT: linalg.pack
func.func @pack_with_padding(%x: tensor<12x20xf32>, %zero: f32) -> tensor<2x3x8x8xf32> {
  %empty = tensor.empty() : tensor<2x3x8x8xf32>
  %0 = linalg.pack %x padding_value(%zero : f32) inner_dims_pos = [0, 1] inner_tiles = [8, 8] into %empty
      : tensor<12x20xf32> -> tensor<2x3x8x8xf32>
  return %0 : tensor<2x3x8x8xf32>
}

// -----

// CHECK-LABEL: func.func @unpack
// CHECK: linalg.transpose {{.*}} permutation = [0, 2, 1, 3]
// CHECK: tensor.collapse_shape
// CHECK: tensor.extract_slice {{.*}} [12, 30] [1, 1]
// CHECK-NOT: linalg.unpack
func.func @unpack(%x: tensor<2x4x8x8xf32>) -> tensor<12x30xf32> {
  %empty = tensor.empty() : tensor<12x30xf32>
  %0 = linalg.unpack %x inner_dims_pos = [0, 1] inner_tiles = [8, 8] into %empty
      : tensor<2x4x8x8xf32> -> tensor<12x30xf32>
  return %0 : tensor<12x30xf32>
}

// -----

// Extents of tiles that show at run time: padded, and gathered.
// CHECK-LABEL: func.func @dynamic_tiles
// CHECK: %[[PADDED:.*]] = tensor.pad %arg0 low[0, 0] high[
// CHECK: linalg.generic
// CHECK: tensor.extract %[[PADDED]][
// CHECK-NOT: linalg.pack
func.func @dynamic_tiles(%x: tensor<32x32xf32>, %z: f32, %d: tensor<?x?x?x?xf32>, %t0: index, %t1: index) -> tensor<?x?x?x?xf32> {
  %0 = linalg.pack %x padding_value(%z : f32) inner_dims_pos = [0, 1] inner_tiles = [%t0, %t1] into %d : tensor<32x32xf32> -> tensor<?x?x?x?xf32>
  return %0 : tensor<?x?x?x?xf32>
}

// -----

// CHECK-LABEL: func.func @dynamic_unpack
// CHECK: linalg.generic
// CHECK: arith.divui
// CHECK: arith.remui
// CHECK: tensor.extract %arg0[
// CHECK-NOT: linalg.unpack
func.func @dynamic_unpack(%x: tensor<?x?x?x?xf32>, %d: tensor<32x32xf32>, %t0: index, %t1: index) -> tensor<32x32xf32> {
  %0 = linalg.unpack %x inner_dims_pos = [0, 1] inner_tiles = [%t0, %t1] into %d : tensor<?x?x?x?xf32> -> tensor<32x32xf32>
  return %0 : tensor<32x32xf32>
}

// -----

// A reshape to extents that are known as values.
// CHECK-LABEL: func.func @reshape
// CHECK: cf.assert %{{.*}}, "tensor.reshape: expected as many elements as before"
// CHECK: %[[FLAT:.*]] = tensor.collapse_shape %arg0 {{\[}}[0, 1]]
// CHECK: tensor.expand_shape %[[FLAT]] {{\[}}[0, 1]] output_shape [%arg1, 32]
// CHECK-NOT: tensor.reshape
func.func @reshape(%x: tensor<?x64xf32>, %n: index) -> tensor<?x32xf32> {
  %c32 = arith.constant 32 : index
  %s = tensor.from_elements %n, %c32 : tensor<2xindex>
  %0 = tensor.reshape %x(%s) : (tensor<?x64xf32>, tensor<2xindex>) -> tensor<?x32xf32>
  return %0 : tensor<?x32xf32>
}

// An unknown extent and one of 0 are no elements, which need no memory of what
// they were.
// CHECK-LABEL: func.func @collapse_nothing
// CHECK-SAME:    %[[X:.*]]: tensor<?x0x?xf32>
// CHECK-DAG: %[[TWO:.*]] = arith.constant 2 : index
// CHECK-DAG: %[[LAST:.*]] = tensor.dim %[[X]], %[[TWO]]
// CHECK: %[[EMPTY:.*]] = tensor.empty(%[[LAST]]) : tensor<0x?xf32>
// CHECK: %[[Y:.*]] = tensor.cast %[[EMPTY]] : tensor<0x?xf32> to tensor<?x?xf32>
// CHECK: return %[[Y]]
func.func @collapse_nothing(%x: tensor<?x0x?xf32>) -> tensor<?x?xf32> {
  %0 = tensor.collapse_shape %x [[0, 1], [2]] : tensor<?x0x?xf32> into tensor<?x?xf32>
  return %0 : tensor<?x?xf32>
}

// An unknown extent by itself may have elements.
// CHECK-LABEL: func.func @collapse_unknown
// CHECK: tensor.collapse_shape
func.func @collapse_unknown(%x: tensor<?x3x0xf32>) -> tensor<?x0xf32> {
  %0 = tensor.collapse_shape %x [[0, 1], [2]] : tensor<?x3x0xf32> into tensor<?x0xf32>
  return %0 : tensor<?x0xf32>
}

// A large constant of equal elements is memory that is filled, no data of the
// program.
// CHECK-LABEL: func.func @splat
// CHECK-DAG: %[[HALF:.*]] = arith.constant 5.000000e-01 : f32
// CHECK-DAG: %[[EMPTY:.*]] = tensor.empty() : tensor<65536x65536xf32>
// CHECK: %[[FILLED:.*]] = linalg.fill ins(%[[HALF]] : f32) outs(%[[EMPTY]]
// CHECK: return %[[FILLED]], %{{.*}} : tensor<65536x65536xf32>, tensor<16xf32>
func.func @splat() -> (tensor<65536x65536xf32>, tensor<16xf32>) {
  %large = arith.constant dense<0.5> : tensor<65536x65536xf32>
  %small = arith.constant dense<0.5> : tensor<16xf32>
  return %large, %small : tensor<65536x65536xf32>, tensor<16xf32>
}

// -----

// Without elements there is nothing to copy.
// CHECK-LABEL: func.func @pad_of_nothing
// CHECK-NOT: tensor.pad
// CHECK: %[[ALL:.*]] = linalg.fill
// CHECK: return %[[ALL]] : tensor<0x16x8xf16>
func.func @pad_of_nothing(%x: tensor<0x16x2xf16>) -> tensor<0x16x8xf16> {
  %zero = arith.constant 0.0 : f16
  %0 = tensor.pad %x low[0, 0, 0] high[0, 0, 6] {
  ^bb0(%i: index, %j: index, %k: index):
    tensor.yield %zero : f16
  } : tensor<0x16x2xf16> to tensor<0x16x8xf16>
  return %0 : tensor<0x16x8xf16>
}

// -----

// Only the borders of a large tensor are filled: those of the first dimension
// whole, of the next one as far as these leave them.
// CHECK-LABEL: func.func @pad
// CHECK-SAME:    %[[X:.*]]: tensor<4096x4095xf32>
// CHECK-DAG:   %[[ZERO:.*]] = arith.constant 0.000000e+00 : f32
// CHECK:       %[[EMPTY:.*]] = tensor.empty() : tensor<4098x4100xf32>
// CHECK:       %[[ROWS:.*]] = linalg.fill ins(%[[ZERO]] : f32) outs(%{{.*}} : tensor<2x4100xf32>)
// CHECK:       %[[BELOW:.*]] = tensor.insert_slice %[[ROWS]] into %[[EMPTY]][4096, 0] [2, 4100] [1, 1]
// CHECK:       %[[LEFT:.*]] = linalg.fill ins(%[[ZERO]] : f32) outs(%{{.*}} : tensor<4096x1xf32>)
// CHECK:       tensor.insert_slice %[[LEFT]] into %[[BELOW]][0, 0] [4096, 1] [1, 1]
// CHECK:       %[[RIGHT:.*]] = linalg.fill ins(%[[ZERO]] : f32) outs(%{{.*}} : tensor<4096x4xf32>)
// CHECK:       %[[ALL:.*]] = tensor.insert_slice %[[RIGHT]] into %{{.*}}[0, 4096] [4096, 4] [1, 1]
// CHECK:       %[[Y:.*]] = tensor.insert_slice %[[X]] into %[[ALL]][0, 1] [4096, 4095] [1, 1]
// CHECK:       return %[[Y]]
func.func @pad(%x: tensor<4096x4095xf32>) -> tensor<4098x4100xf32> {
  %zero = arith.constant 0.0 : f32
  %0 = tensor.pad %x low[0, 1] high[2, 4] {
  ^bb0(%i: index, %j: index):
    tensor.yield %zero : f32
  } : tensor<4096x4095xf32> to tensor<4098x4100xf32>
  return %0 : tensor<4098x4100xf32>
}

// A small one is filled whole, in one loop.
// CHECK-LABEL: func.func @small_pad
// CHECK:       tensor.pad
func.func @small_pad(%x: tensor<4x5xf32>) -> tensor<5x6xf32> {
  %zero = arith.constant 0.0 : f32
  %0 = tensor.pad %x low[0, 1] high[1, 0] {
  ^bb0(%i: index, %j: index):
    tensor.yield %zero : f32
  } : tensor<4x5xf32> to tensor<5x6xf32>
  return %0 : tensor<5x6xf32>
}

// -----

// What upstream does not bufferize: a place of each batch names what is taken.
// CHECK:       #[[ALL:.*]] = affine_map<(d0, d1) -> (d0, d1)>
// CHECK-LABEL: func.func @gather
// CHECK-SAME:    %[[X:.*]]: tensor<8x6x9xf32>, %[[AT:.*]]: tensor<5x2xi32>
// CHECK:       %[[Y:.*]] = linalg.generic {indexing_maps = [#[[ALL]]], iterator_types = ["parallel", "parallel"]} outs(%{{.*}} : tensor<5x6xf32>)
// CHECK:         %[[BATCH:.*]] = linalg.index 0
// CHECK:         %[[COLUMN:.*]] = linalg.index 1
// CHECK:         %[[FIRST:.*]] = tensor.extract %[[AT]][%[[BATCH]], %c0{{.*}}]
// CHECK:         %[[I:.*]] = arith.index_cast %[[FIRST]]
// CHECK:         %[[SECOND:.*]] = tensor.extract %[[AT]][%[[BATCH]], %c1{{.*}}]
// CHECK:         %[[K:.*]] = arith.index_cast %[[SECOND]]
// CHECK:         %[[E:.*]] = tensor.extract %[[X]][%[[I]], %[[COLUMN]], %[[K]]]
// CHECK:         linalg.yield %[[E]]
// CHECK:       return %[[Y]]
func.func @gather(%x: tensor<8x6x9xf32>, %at: tensor<5x2xi32>) -> tensor<5x6xf32> {
  %0 = tensor.gather %x[%at] gather_dims([0, 2]) : (tensor<8x6x9xf32>, tensor<5x2xi32>) -> tensor<5x6xf32>
  return %0 : tensor<5x6xf32>
}

// Dimensions that are gathered may be kept, of one element each.
// CHECK-LABEL: func.func @gather_keeping
// CHECK:       %[[COLUMN:.*]] = linalg.index 3
// CHECK:       tensor.extract %{{.*}}[%{{.*}}, %[[COLUMN]]] : tensor<?x6xf32>
func.func @gather_keeping(%x: tensor<?x6xf32>, %at: tensor<3x?x1xindex>) -> tensor<3x?x1x6xf32> {
  %0 = tensor.gather %x[%at] gather_dims([0]) : (tensor<?x6xf32>, tensor<3x?x1xindex>) -> tensor<3x?x1x6xf32>
  return %0 : tensor<3x?x1x6xf32>
}
