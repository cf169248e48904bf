// RUN: fp8-opt %s --fp8-flatten-rows --split-input-file | FileCheck %s

// What tells batches apart, and what stays with it.

// No product, no reshape: nobody asks for rows.
// CHECK-LABEL: func.func @nobody_asks
// CHECK-NOT: tensor.collapse_shape
// CHECK: math.exp %arg0 : tensor<4x8x16xf32>
func.func @nobody_asks(%x: tensor<4x8x16xf32>) -> tensor<4x8x16xf32> {
  %0 = math.exp %x : tensor<4x8x16xf32>
  return %0 : tensor<4x8x16xf32>
}

// -----

#xyz = affine_map<(b, l, n) -> (b, l, n)>

// Each row of a batch has a vector of its own.
// CHECK-LABEL: func.func @positions
// CHECK: linalg.generic {{.*}} iterator_types = ["parallel", "parallel", "parallel"]}
// CHECK: tensor.collapse_shape
func.func @positions(%x: tensor<4x8x16xf32>, %p: tensor<8x16xf32>) -> tensor<32x16xf32> {
  %e = tensor.empty() : tensor<4x8x16xf32>
  %0 = linalg.generic {indexing_maps = [#xyz, affine_map<(b, l, n) -> (l, n)>, #xyz], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x, %p : tensor<4x8x16xf32>, tensor<8x16xf32>) outs(%e : tensor<4x8x16xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %1 = arith.addf %a, %b : f32
    linalg.yield %1 : f32
  } -> tensor<4x8x16xf32>
  %c = tensor.collapse_shape %0 [[0, 1], [2]] : tensor<4x8x16xf32> into tensor<32x16xf32>
  return %c : tensor<32x16xf32>
}

// -----

#xyz = affine_map<(b, l, n) -> (b, l, n)>

// CHECK-LABEL: func.func @sum_over_batches
// CHECK: linalg.generic {{.*}} iterator_types = ["reduction", "parallel", "parallel"]} ins(%{{.*}} : tensor<4x8x16xf32>)
func.func @sum_over_batches(%x: tensor<32x16xf32>, %y: tensor<8x16xf32>) -> tensor<8x16xf32> {
  %h = tensor.expand_shape %x [[0, 1], [2]] output_shape [4, 8, 16] : tensor<32x16xf32> into tensor<4x8x16xf32>
  %0 = linalg.generic {indexing_maps = [#xyz, affine_map<(b, l, n) -> (l, n)>], iterator_types = ["reduction", "parallel", "parallel"]}
      ins(%h : tensor<4x8x16xf32>) outs(%y : tensor<8x16xf32>) {
  ^bb0(%a: f32, %o: f32):
    %1 = arith.addf %a, %o : f32
    linalg.yield %1 : f32
  } -> tensor<8x16xf32>
  return %0 : tensor<8x16xf32>
}

// -----

// CHECK-LABEL: func.func @batches_change_places
// CHECK: linalg.transpose {{.*}} permutation = [1, 0, 2]
func.func @batches_change_places(%x: tensor<4x8x16xf32>) -> tensor<32x16xf32> {
  %e = tensor.empty() : tensor<8x4x16xf32>
  %t = linalg.transpose ins(%x : tensor<4x8x16xf32>) outs(%e : tensor<8x4x16xf32>) permutation = [1, 0, 2]
  %c = tensor.collapse_shape %t [[0, 1], [2]] : tensor<8x4x16xf32> into tensor<32x16xf32>
  return %c : tensor<32x16xf32>
}

// -----

#xyz = affine_map<(b, l, n) -> (b, l, n)>

// A mask of what comes later in a batch.
// CHECK-LABEL: func.func @index
// CHECK: linalg.index 1
// CHECK: tensor.collapse_shape
func.func @index(%x: tensor<4x8x16xi64>) -> tensor<32x16xi64> {
  %e = tensor.empty() : tensor<4x8x16xi64>
  %0 = linalg.generic {indexing_maps = [#xyz, #xyz], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x : tensor<4x8x16xi64>) outs(%e : tensor<4x8x16xi64>) {
  ^bb0(%a: i64, %o: i64):
    %i = linalg.index 1 : index
    %j = arith.index_cast %i : index to i64
    %1 = arith.addi %a, %j : i64
    linalg.yield %1 : i64
  } -> tensor<4x8x16xi64>
  %c = tensor.collapse_shape %0 [[0, 1], [2]] : tensor<4x8x16xi64> into tensor<32x16xi64>
  return %c : tensor<32x16xi64>
}

// -----

// CHECK-LABEL: func.func @slice_of_batches
// CHECK: tensor.extract_slice {{.*}} : tensor<4x8x16xf32> to tensor<2x8x16xf32>
func.func @slice_of_batches(%x: tensor<32x16xf32>) -> tensor<16x16xf32> {
  %h = tensor.expand_shape %x [[0, 1], [2]] output_shape [4, 8, 16] : tensor<32x16xf32> into tensor<4x8x16xf32>
  %s = tensor.extract_slice %h[1, 0, 0] [2, 8, 16] [1, 1, 1] : tensor<4x8x16xf32> to tensor<2x8x16xf32>
  %c = tensor.collapse_shape %s [[0, 1], [2]] : tensor<2x8x16xf32> into tensor<16x16xf32>
  return %c : tensor<16x16xf32>
}

// -----

// As many as another tensor has need not be all.
// CHECK-LABEL: func.func @slice_of_unknown_extent
// CHECK: tensor.extract_slice {{.*}} : tensor<?x?x16xf32> to tensor<?x?x8xf32>
func.func @slice_of_unknown_extent(%x: tensor<?x16xf32>, %y: tensor<?x?x16xf32>, %b: index, %l: index) -> tensor<?x8xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %h = tensor.expand_shape %x [[0, 1], [2]] output_shape [%b, %l, 16] : tensor<?x16xf32> into tensor<?x?x16xf32>
  %0 = tensor.dim %y, %c0 : tensor<?x?x16xf32>
  %1 = tensor.dim %y, %c1 : tensor<?x?x16xf32>
  %s = tensor.extract_slice %h[0, 0, 0] [%0, %1, 8] [1, 1, 1] : tensor<?x?x16xf32> to tensor<?x?x8xf32>
  %c = tensor.collapse_shape %s [[0, 1], [2]] : tensor<?x?x8xf32> into tensor<?x8xf32>
  return %c : tensor<?x8xf32>
}

// -----

// Rows of a length that is given.
// CHECK-LABEL: func.func @slice_of_given_extent
// CHECK: tensor.extract_slice {{.*}} : tensor<?x?x16xf32> to tensor<2x3x16xf32>
func.func @slice_of_given_extent(%x: tensor<?x16xf32>, %b: index, %l: index) -> tensor<6x16xf32> {
  %h = tensor.expand_shape %x [[0, 1], [2]] output_shape [%b, %l, 16] : tensor<?x16xf32> into tensor<?x?x16xf32>
  %s = tensor.extract_slice %h[0, 0, 0] [2, 3, 16] [1, 1, 1] : tensor<?x?x16xf32> to tensor<2x3x16xf32>
  %c = tensor.collapse_shape %s [[0, 1], [2]] : tensor<2x3x16xf32> into tensor<6x16xf32>
  return %c : tensor<6x16xf32>
}

// -----

#map = affine_map<(b, u, n) -> (b, u, n)>

// Rows of one in several batches become rows, but not one with their columns, which all share.
// CHECK-LABEL: func.func @single_rows
// CHECK: linalg.generic {{.*}} ins(%{{.*}}, %arg1 : tensor<4x8xf32>, tensor<8xf32>)
func.func @single_rows(%x: tensor<4x1x8xf32>, %p: tensor<8xf32>) -> tensor<32xf32> {
  %e = tensor.empty() : tensor<4x1x8xf32>
  %0 = linalg.generic {indexing_maps = [#map, affine_map<(b, u, n) -> (n)>, #map], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x, %p : tensor<4x1x8xf32>, tensor<8xf32>) outs(%e : tensor<4x1x8xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %1 = arith.addf %a, %b : f32
    linalg.yield %1 : f32
  } -> tensor<4x1x8xf32>
  %c = tensor.collapse_shape %0 [[0, 1, 2]] : tensor<4x1x8xf32> into tensor<32xf32>
  return %c : tensor<32xf32>
}

// -----

// Rows are cut in another way.
// CHECK-LABEL: func.func @reshape_of_columns
// CHECK: tensor.reshape
func.func @reshape_of_columns(%x: tensor<?x16xf32>, %b: i64, %l: i64) -> tensor<?x?x32xf32> {
  %n = arith.constant 32 : i64
  %s = tensor.from_elements %b, %l, %n : tensor<3xi64>
  %h = tensor.reshape %x(%s) : (tensor<?x16xf32>, tensor<3xi64>) -> tensor<?x?x32xf32>
  return %h : tensor<?x?x32xf32>
}

//===----------------------------------------------------------------------===//
// Neighbours of those
//===----------------------------------------------------------------------===//

// -----

// Blocks of a row: one pass computes the magnitudes and their maxima.
// CHECK-LABEL: func.func @before_what_stays
// CHECK: %[[H:.*]] = tensor.expand_shape %arg0
// CHECK: %[[A:.*]] = math.absf %[[H]] : tensor<4x8x32xf32>
// CHECK: linalg.generic {{.*}} ins(%[[A]]
func.func @before_what_stays(%x: tensor<4x256xf32>, %y: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %h = tensor.expand_shape %x [[0], [1, 2]] output_shape [4, 8, 32] : tensor<4x256xf32> into tensor<4x8x32xf32>
  %a = math.absf %h : tensor<4x8x32xf32>
  %0 = linalg.generic {indexing_maps = [affine_map<(b, l, n) -> (b, l, n)>, affine_map<(b, l, n) -> (b, l)>], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a : tensor<4x8x32xf32>) outs(%y : tensor<4x8xf32>) {
  ^bb0(%b: f32, %o: f32):
    %1 = arith.maximumf %b, %o : f32
    linalg.yield %1 : f32
  } -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}

// -----

#xyz = affine_map<(b, l, n) -> (b, l, n)>

// CHECK-LABEL: func.func @behind_what_stays
// CHECK: %[[P:.*]] = linalg.generic {{.*}} iterator_types = ["parallel", "parallel", "parallel"]}
// CHECK: %[[E:.*]] = math.exp %[[P]] : tensor<4x8x16xf32>
// CHECK: tensor.collapse_shape %[[E]]
func.func @behind_what_stays(%x: tensor<4x8x16xf32>, %p: tensor<8x16xf32>) -> tensor<32x16xf32> {
  %e = tensor.empty() : tensor<4x8x16xf32>
  %0 = linalg.generic {indexing_maps = [#xyz, affine_map<(b, l, n) -> (l, n)>, #xyz], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x, %p : tensor<4x8x16xf32>, tensor<8x16xf32>) outs(%e : tensor<4x8x16xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %1 = arith.addf %a, %b : f32
    linalg.yield %1 : f32
  } -> tensor<4x8x16xf32>
  %1 = math.exp %0 : tensor<4x8x16xf32>
  %c = tensor.collapse_shape %1 [[0, 1], [2]] : tensor<4x8x16xf32> into tensor<32x16xf32>
  return %c : tensor<32x16xf32>
}

// -----

#xyz = affine_map<(b, l, n) -> (b, l, n)>

// What a product computes is on rows, whatever it is added to.
// CHECK-LABEL: func.func @beside_what_stays
// CHECK: %[[P:.*]] = linalg.generic {{.*}} iterator_types = ["parallel", "parallel", "parallel"]}
// CHECK: %[[C:.*]] = tensor.collapse_shape %[[P]]
// CHECK: arith.addf %[[C]], %arg2 : tensor<32x16xf32>
func.func @beside_what_stays(%x: tensor<4x8x16xf32>, %p: tensor<8x16xf32>, %y: tensor<32x16xf32>) -> tensor<32x16xf32> {
  %e = tensor.empty() : tensor<4x8x16xf32>
  %0 = linalg.generic {indexing_maps = [#xyz, affine_map<(b, l, n) -> (l, n)>, #xyz], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x, %p : tensor<4x8x16xf32>, tensor<8x16xf32>) outs(%e : tensor<4x8x16xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %1 = arith.addf %a, %b : f32
    linalg.yield %1 : f32
  } -> tensor<4x8x16xf32>
  %h = tensor.expand_shape %y [[0, 1], [2]] output_shape [4, 8, 16] : tensor<32x16xf32> into tensor<4x8x16xf32>
  %1 = arith.addf %0, %h : tensor<4x8x16xf32>
  %c = tensor.collapse_shape %1 [[0, 1], [2]] : tensor<4x8x16xf32> into tensor<32x16xf32>
  return %c : tensor<32x16xf32>
}

// -----

// Packing becomes a transpose, which is one with the next.
// CHECK-LABEL: func.func @pack
// CHECK: linalg.transpose {{.*}} permutation = [0, 3, 1, 2]
func.func @pack(%x: tensor<64x32xf32>) -> tensor<32x64xf32> {
  %e = tensor.empty() : tensor<2x4x16x16xf32>
  %p = linalg.pack %x outer_dims_perm = [1, 0] inner_dims_pos = [0, 1] inner_tiles = [16, 16] into %e : tensor<64x32xf32> -> tensor<2x4x16x16xf32>
  %f = tensor.empty() : tensor<2x16x4x16xf32>
  %t = linalg.transpose ins(%p : tensor<2x4x16x16xf32>) outs(%f : tensor<2x16x4x16xf32>) permutation = [0, 3, 1, 2]
  %c = tensor.collapse_shape %t [[0, 1], [2, 3]] : tensor<2x16x4x16xf32> into tensor<32x64xf32>
  return %c : tensor<32x64xf32>
}
