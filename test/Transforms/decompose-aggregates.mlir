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
