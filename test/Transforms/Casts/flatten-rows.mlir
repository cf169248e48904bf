// RUN: fp8-opt %s --fp8-flatten-rows --split-input-file | FileCheck %s

// What surrounds matrix products of batches of rows, on rows.

#xyz = affine_map<(b, l, n) -> (b, l, n)>
#column = affine_map<(b, l, n) -> (n)>

//===----------------------------------------------------------------------===//
// What works on rows
//===----------------------------------------------------------------------===//

// CHECK-LABEL: func.func @elementwise
// CHECK: %[[X:.*]] = tensor.collapse_shape %arg0 {{\[}}[0, 1], [2]] : tensor<4x8x16xf32> into tensor<32x16xf32>
// CHECK: linalg.generic {{.*}} iterator_types = ["parallel", "parallel"]} ins(%[[X]], %arg1 : tensor<32x16xf32>, tensor<16xf32>)
// CHECK-NOT: tensor.collapse_shape
// CHECK: return
func.func @elementwise(%x: tensor<4x8x16xf32>, %g: tensor<16xf32>) -> tensor<32x16xf32> {
  %e = tensor.empty() : tensor<4x8x16xf32>
  %0 = linalg.generic {indexing_maps = [#xyz, #column, #xyz], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x, %g : tensor<4x8x16xf32>, tensor<16xf32>) outs(%e : tensor<4x8x16xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %1 = arith.mulf %a, %b : f32
    linalg.yield %1 : f32
  } -> tensor<4x8x16xf32>
  %c = tensor.collapse_shape %0 [[0, 1], [2]] : tensor<4x8x16xf32> into tensor<32x16xf32>
  return %c : tensor<32x16xf32>
}

// -----

#xyz = affine_map<(b, l, n) -> (b, l, n)>

// One batch, and batches of one row.
// CHECK-LABEL: func.func @unit_batch
// CHECK-DAG: %[[X:.*]] = tensor.collapse_shape %arg0 {{\[}}[0, 1], [2]] : tensor<1x8x16xf32> into tensor<8x16xf32>
// CHECK-DAG: %[[Y:.*]] = tensor.collapse_shape %arg1 {{\[}}[0, 1], [2]] : tensor<8x1x16xf32> into tensor<8x16xf32>
// CHECK-DAG: %[[A:.*]] = math.exp %[[X]]
// CHECK-DAG: %[[B:.*]] = math.exp %[[Y]]
// CHECK: return %[[A]], %[[B]]
func.func @unit_batch(%x: tensor<1x8x16xf32>, %y: tensor<8x1x16xf32>) -> (tensor<8x16xf32>, tensor<8x16xf32>) {
  %0 = math.exp %x : tensor<1x8x16xf32>
  %c = tensor.collapse_shape %0 [[0, 1], [2]] : tensor<1x8x16xf32> into tensor<8x16xf32>
  %1 = math.exp %y : tensor<8x1x16xf32>
  %d = tensor.collapse_shape %1 [[0, 1], [2]] : tensor<8x1x16xf32> into tensor<8x16xf32>
  return %c, %d : tensor<8x16xf32>, tensor<8x16xf32>
}

// -----

#xyz = affine_map<(b, l, n) -> (b, l, n)>
#row = affine_map<(b, l, n) -> (b, l, 0)>

// A sum of each row, that is kept as a dimension of 1 and repeated.
// CHECK-LABEL: func.func @rows
// CHECK: %[[X:.*]] = tensor.collapse_shape %arg0
// CHECK: linalg.fill {{.*}} outs(%{{.*}} : tensor<32x1xf32>)
// CHECK: %[[S:.*]] = linalg.generic {{.*}} iterator_types = ["parallel", "reduction"]} ins(%[[X]] : tensor<32x16xf32>) outs(%{{.*}} : tensor<32x1xf32>)
// CHECK: linalg.generic {{.*}} ins(%[[X]], %[[S]] : tensor<32x16xf32>, tensor<32x1xf32>)
// CHECK: return {{.*}} : tensor<32x16xf32>
func.func @rows(%x: tensor<4x8x16xf32>) -> tensor<32x16xf32> {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x8x1xf32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<4x8x1xf32>) -> tensor<4x8x1xf32>
  %s = linalg.generic {indexing_maps = [#xyz, #row], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x : tensor<4x8x16xf32>) outs(%f : tensor<4x8x1xf32>) {
  ^bb0(%a: f32, %o: f32):
    %1 = arith.addf %a, %o : f32
    linalg.yield %1 : f32
  } -> tensor<4x8x1xf32>
  %m = tensor.empty() : tensor<4x8x16xf32>
  %0 = linalg.generic {indexing_maps = [#xyz, #row, #xyz], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x, %s : tensor<4x8x16xf32>, tensor<4x8x1xf32>) outs(%m : tensor<4x8x16xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %1 = arith.mulf %a, %b : f32
    linalg.yield %1 : f32
  } -> tensor<4x8x16xf32>
  %c = tensor.collapse_shape %0 [[0, 1], [2]] : tensor<4x8x16xf32> into tensor<32x16xf32>
  return %c : tensor<32x16xf32>
}

// -----

#xyz = affine_map<(b, l, n) -> (b, l, n)>
#stat = affine_map<(b, l, n) -> (b, l)>

// Sums without that dimension, which a reshape adds.
// CHECK-LABEL: func.func @row_vectors
// CHECK: %[[X:.*]] = tensor.collapse_shape %arg0
// CHECK: %[[S:.*]] = linalg.generic {{.*}} iterator_types = ["parallel", "reduction"]} ins(%[[X]] : tensor<32x16xf32>) outs(%{{.*}} : tensor<32xf32>)
// CHECK: linalg.generic {{.*}} ins(%[[X]], %[[S]] : tensor<32x16xf32>, tensor<32xf32>)
func.func @row_vectors(%x: tensor<4x8x16xf32>) -> tensor<32x16xf32> {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x8xf32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<4x8xf32>) -> tensor<4x8xf32>
  %s = linalg.generic {indexing_maps = [#xyz, #stat], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x : tensor<4x8x16xf32>) outs(%f : tensor<4x8xf32>) {
  ^bb0(%a: f32, %o: f32):
    %1 = arith.addf %a, %o : f32
    linalg.yield %1 : f32
  } -> tensor<4x8xf32>
  %u = tensor.expand_shape %s [[0], [1, 2]] output_shape [4, 8, 1] : tensor<4x8xf32> into tensor<4x8x1xf32>
  %v = tensor.collapse_shape %u [[0], [1, 2]] : tensor<4x8x1xf32> into tensor<4x8xf32>
  %m = tensor.empty() : tensor<4x8x16xf32>
  %0 = linalg.generic {indexing_maps = [#xyz, #stat, #xyz], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x, %v : tensor<4x8x16xf32>, tensor<4x8xf32>) outs(%m : tensor<4x8x16xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %1 = arith.mulf %a, %b : f32
    linalg.yield %1 : f32
  } -> tensor<4x8x16xf32>
  %c = tensor.collapse_shape %0 [[0, 1], [2]] : tensor<4x8x16xf32> into tensor<32x16xf32>
  return %c : tensor<32x16xf32>
}

// -----

#xyz = affine_map<(b, l, n) -> (b, l, n)>
#kept = affine_map<(b, l, n) -> (0, 0, n)>

// The gradient of a bias.
// CHECK-LABEL: func.func @columns
// CHECK: linalg.generic {{.*}} iterator_types = ["reduction", "parallel"]} ins(%arg0 : tensor<32x16xf32>) outs(%{{.*}} : tensor<1x1x16xf32>)
func.func @columns(%x: tensor<32x16xf32>) -> tensor<1x1x16xf32> {
  %z = arith.constant 0.0 : f32
  %h = tensor.expand_shape %x [[0, 1], [2]] output_shape [4, 8, 16] : tensor<32x16xf32> into tensor<4x8x16xf32>
  %e = tensor.empty() : tensor<1x1x16xf32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<1x1x16xf32>) -> tensor<1x1x16xf32>
  %s = linalg.generic {indexing_maps = [#xyz, #kept], iterator_types = ["reduction", "reduction", "parallel"]}
      ins(%h : tensor<4x8x16xf32>) outs(%f : tensor<1x1x16xf32>) {
  ^bb0(%a: f32, %o: f32):
    %1 = arith.addf %a, %o : f32
    linalg.yield %1 : f32
  } -> tensor<1x1x16xf32>
  return %s : tensor<1x1x16xf32>
}

// -----

#xyz = affine_map<(b, l, n) -> (b, l, n)>

// Between two products nothing is left of the batches; the result has them.
// CHECK-LABEL: func.func @between
// CHECK: %[[A:.*]] = arith.negf %arg0 : tensor<32x16xf32>
// CHECK-DAG: %[[B:.*]] = math.exp %[[A]] : tensor<32x16xf32>
// CHECK-DAG: %[[C:.*]] = tensor.expand_shape %[[A]] {{\[}}[0, 1], [2]] output_shape [4, 8, 16]
// CHECK: return %[[B]], %[[C]]
func.func @between(%x: tensor<32x16xf32>) -> (tensor<32x16xf32>, tensor<4x8x16xf32>) {
  %h = tensor.expand_shape %x [[0, 1], [2]] output_shape [4, 8, 16] : tensor<32x16xf32> into tensor<4x8x16xf32>
  %0 = arith.negf %h : tensor<4x8x16xf32>
  %1 = math.exp %0 : tensor<4x8x16xf32>
  %c = tensor.collapse_shape %1 [[0, 1], [2]] : tensor<4x8x16xf32> into tensor<32x16xf32>
  return %c, %0 : tensor<32x16xf32>, tensor<4x8x16xf32>
}

// -----

// A product that does not tell batches apart, without any reshape; its marks stay.
// CHECK-LABEL: func.func @contract
// CHECK: %[[A:.*]] = arith.negf %{{.*}} : tensor<32x16xf32>
// CHECK: linalg.contract {{.*}} {fp8.name = "q", fp8.role = #fp8.role<fprop>} ins(%[[A]], %arg1 : tensor<32x16xf32>, tensor<16x64xf32>) outs(%{{.*}} : tensor<32x64xf32>)
// CHECK: tensor.expand_shape
func.func @contract(%x: tensor<4x8x16xf32>, %w: tensor<16x64xf32>, %y: tensor<4x8x64xf32>) -> tensor<4x8x64xf32> {
  %a = arith.negf %x : tensor<4x8x16xf32>
  %0 = linalg.contract indexing_maps = [affine_map<(b, l, n, k) -> (b, l, k)>, affine_map<(b, l, n, k) -> (k, n)>,
                                        affine_map<(b, l, n, k) -> (b, l, n)>] {fp8.name = "q", fp8.role = #fp8.role<fprop>}
      ins(%a, %w : tensor<4x8x16xf32>, tensor<16x64xf32>) outs(%y : tensor<4x8x64xf32>) -> tensor<4x8x64xf32>
  return %0 : tensor<4x8x64xf32>
}

// -----

// The gradient of a weight: rows are what is summed over, and a transposed copy has them last.
// CHECK-LABEL: func.func @transpose
// CHECK: %[[X:.*]] = tensor.collapse_shape %arg0 {{\[}}[0, 1], [2]] : tensor<4x8x16xf32> into tensor<32x16xf32>
// CHECK: linalg.transpose ins(%[[X]] : tensor<32x16xf32>) outs(%{{.*}} : tensor<16x32xf32>) permutation = [1, 0]
func.func @transpose(%x: tensor<4x8x16xf32>) -> tensor<16x32xf32> {
  %e = tensor.empty() : tensor<16x4x8xf32>
  %t = linalg.transpose ins(%x : tensor<4x8x16xf32>) outs(%e : tensor<16x4x8xf32>) permutation = [2, 0, 1]
  %c = tensor.collapse_shape %t [[0], [1, 2]] : tensor<16x4x8xf32> into tensor<16x32xf32>
  return %c : tensor<16x32xf32>
}

// -----

// CHECK-LABEL: func.func @broadcast
// CHECK: linalg.broadcast ins(%arg0 : tensor<16xf32>) outs(%{{.*}} : tensor<32x16xf32>) dimensions = [0]
func.func @broadcast(%g: tensor<16xf32>) -> tensor<32x16xf32> {
  %e = tensor.empty() : tensor<4x8x16xf32>
  %b = linalg.broadcast ins(%g : tensor<16xf32>) outs(%e : tensor<4x8x16xf32>) dimensions = [0, 1]
  %c = tensor.collapse_shape %b [[0, 1], [2]] : tensor<4x8x16xf32> into tensor<32x16xf32>
  return %c : tensor<32x16xf32>
}

// -----

// CHECK-LABEL: func.func @reduce
// CHECK: linalg.generic {{.*}} iterator_types = ["parallel", "reduction"]} ins(%arg0 : tensor<32x16xf32>) outs(%{{.*}} : tensor<32xf32>)
func.func @reduce(%x: tensor<32x16xf32>, %y: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %h = tensor.expand_shape %x [[0, 1], [2]] output_shape [4, 8, 16] : tensor<32x16xf32> into tensor<4x8x16xf32>
  %0 = linalg.reduce ins(%h : tensor<4x8x16xf32>) outs(%y : tensor<4x8xf32>) dimensions = [2]
    (%a: f32, %o: f32) {
      %1 = arith.addf %a, %o : f32
      linalg.yield %1 : f32
    }
  return %0 : tensor<4x8xf32>
}

// -----

// The halves of what one product computes, and their gradients put together.
// CHECK-LABEL: func.func @slices
// CHECK: tensor.extract_slice %arg0[0, 0] [32, 8] [1, 1] : tensor<32x16xf32> to tensor<32x8xf32>
// CHECK: tensor.insert_slice %{{.*}} into %{{.*}}[0, 8] [32, 8] [1, 1] : tensor<32x8xf32> into tensor<32x16xf32>
// CHECK: tensor.concat dim(1) %{{.*}} : (tensor<32x8xf32>, tensor<32x8xf32>) -> tensor<32x16xf32>
// CHECK-NOT: tensor.collapse_shape
// CHECK: return
func.func @slices(%x: tensor<32x16xf32>) -> (tensor<32x16xf32>, tensor<32x16xf32>) {
  %z = arith.constant 0.0 : f32
  %h = tensor.expand_shape %x [[0, 1], [2]] output_shape [4, 8, 16] : tensor<32x16xf32> into tensor<4x8x16xf32>
  %s = tensor.extract_slice %h[0, 0, 0] [4, 8, 8] [1, 1, 1] : tensor<4x8x16xf32> to tensor<4x8x8xf32>
  %e = tensor.empty() : tensor<4x8x16xf32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<4x8x16xf32>) -> tensor<4x8x16xf32>
  %i = tensor.insert_slice %s into %f[0, 0, 8] [4, 8, 8] [1, 1, 1] : tensor<4x8x8xf32> into tensor<4x8x16xf32>
  %j = tensor.concat dim(2) %s, %s : (tensor<4x8x8xf32>, tensor<4x8x8xf32>) -> tensor<4x8x16xf32>
  %c = tensor.collapse_shape %i [[0, 1], [2]] : tensor<4x8x16xf32> into tensor<32x16xf32>
  %d = tensor.collapse_shape %j [[0, 1], [2]] : tensor<4x8x16xf32> into tensor<32x16xf32>
  return %c, %d : tensor<32x16xf32>, tensor<32x16xf32>
}

// -----

#xyz = affine_map<(b, l, n) -> (b, l, n)>
#stat = affine_map<(b, l, n) -> (b, l)>

// Rows of a table: the place in a row is counted by another loop.
// CHECK-LABEL: func.func @gather
// CHECK: linalg.generic {{.*}} iterator_types = ["parallel", "parallel"]} ins(%{{.*}} : tensor<32xi64>)
// CHECK: linalg.index 1
// CHECK: tensor.extract %arg0
func.func @gather(%table: tensor<100x16xf32>, %i: tensor<4x8xi64>) -> tensor<32x16xf32> {
  %e = tensor.empty() : tensor<4x8x16xf32>
  %0 = linalg.generic {indexing_maps = [#stat, #xyz], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%i : tensor<4x8xi64>) outs(%e : tensor<4x8x16xf32>) {
  ^bb0(%a: i64, %o: f32):
    %r = arith.index_cast %a : i64 to index
    %n = linalg.index 2 : index
    %v = tensor.extract %table[%r, %n] : tensor<100x16xf32>
    linalg.yield %v : f32
  } -> tensor<4x8x16xf32>
  %c = tensor.collapse_shape %0 [[0, 1], [2]] : tensor<4x8x16xf32> into tensor<32x16xf32>
  return %c : tensor<32x16xf32>
}

// -----

// Heads, each of which has its own product: what is not a row of anything.
// CHECK-LABEL: func.func @batches
// CHECK: math.exp %arg0 : tensor<6x8x8xf32>
func.func @batches(%x: tensor<6x8x8xf32>) -> tensor<6x8x8xf32> {
  %h = tensor.expand_shape %x [[0, 1], [2], [3]] output_shape [2, 3, 8, 8] : tensor<6x8x8xf32> into tensor<2x3x8x8xf32>
  %0 = math.exp %h : tensor<2x3x8x8xf32>
  %c = tensor.collapse_shape %0 [[0, 1], [2], [3]] : tensor<2x3x8x8xf32> into tensor<6x8x8xf32>
  return %c : tensor<6x8x8xf32>
}

// -----

#xyz = affine_map<(b, l, n) -> (b, l, n)>

// Positions of the only batch.
// CHECK-LABEL: func.func @positions_of_one_batch
// CHECK: linalg.generic {{.*}} iterator_types = ["parallel", "parallel"]} ins(%{{.*}}, %arg1 : tensor<8x16xf32>, tensor<8x16xf32>)
func.func @positions_of_one_batch(%x: tensor<1x8x16xf32>, %p: tensor<8x16xf32>) -> tensor<8x16xf32> {
  %e = tensor.empty() : tensor<1x8x16xf32>
  %0 = linalg.generic {indexing_maps = [#xyz, affine_map<(b, l, n) -> (l, n)>, #xyz], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x, %p : tensor<1x8x16xf32>, tensor<8x16xf32>) outs(%e : tensor<1x8x16xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %1 = arith.addf %a, %b : f32
    linalg.yield %1 : f32
  } -> tensor<1x8x16xf32>
  %c = tensor.collapse_shape %0 [[0, 1], [2]] : tensor<1x8x16xf32> into tensor<8x16xf32>
  return %c : tensor<8x16xf32>
}

// -----

#xyz = affine_map<(b, l, n) -> (b, l, n)>

// Single rows of batches, whose dimension may be either neighbour's.
// CHECK-LABEL: func.func @single_rows
// CHECK: linalg.generic {{.*}} iterator_types = ["parallel", "parallel"]} ins(%arg0, %arg1 : tensor<8x16xf32>, tensor<16xf32>)
// CHECK-NOT: tensor.collapse_shape
// CHECK: return
func.func @single_rows(%x: tensor<8x16xf32>, %g: tensor<16xf32>) -> tensor<8x16xf32> {
  %h = tensor.expand_shape %x [[0], [1, 2]] output_shape [8, 1, 16] : tensor<8x16xf32> into tensor<8x1x16xf32>
  %e = tensor.empty() : tensor<8x1x16xf32>
  %0 = linalg.generic {indexing_maps = [#xyz, affine_map<(b, l, n) -> (n)>, #xyz], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%h, %g : tensor<8x1x16xf32>, tensor<16xf32>) outs(%e : tensor<8x1x16xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %1 = arith.addf %a, %b : f32
    linalg.yield %1 : f32
  } -> tensor<8x1x16xf32>
  %c = tensor.collapse_shape %0 [[0], [1, 2]] : tensor<8x1x16xf32> into tensor<8x16xf32>
  return %c : tensor<8x16xf32>
}

// -----

// CHECK-LABEL: func.func @named
// CHECK: linalg.exp ins(%arg0 : tensor<32x16xf32>) outs(%{{.*}} : tensor<32x16xf32>)
// CHECK-NOT: tensor.collapse_shape
// CHECK: return
func.func @named(%x: tensor<32x16xf32>) -> tensor<32x16xf32> {
  %h = tensor.expand_shape %x [[0, 1], [2]] output_shape [4, 8, 16] : tensor<32x16xf32> into tensor<4x8x16xf32>
  %e = tensor.empty() : tensor<4x8x16xf32>
  %0 = linalg.exp ins(%h : tensor<4x8x16xf32>) outs(%e : tensor<4x8x16xf32>) -> tensor<4x8x16xf32>
  %c = tensor.collapse_shape %0 [[0, 1], [2]] : tensor<4x8x16xf32> into tensor<32x16xf32>
  return %c : tensor<32x16xf32>
}

//===----------------------------------------------------------------------===//
// Extents that are not known
//===----------------------------------------------------------------------===//

// -----

#xyz = affine_map<(b, l, n) -> (b, l, n)>

// CHECK-LABEL: func.func @dynamic
// CHECK-SAME: (%[[X:.*]]: tensor<?x16xf32>, %[[B:.*]]: index, %[[L:.*]]: index)
// CHECK: %[[R:.*]] = linalg.generic {{.*}} iterator_types = ["parallel", "parallel"]} ins(%[[X]] : tensor<?x16xf32>)
// CHECK: tensor.expand_shape %[[R]] {{\[}}[0, 1], [2]] output_shape [%[[B]], %[[L]], 16] : tensor<?x16xf32> into tensor<?x?x16xf32>
func.func @dynamic(%x: tensor<?x16xf32>, %b: index, %l: index) -> tensor<?x?x16xf32> {
  %h = tensor.expand_shape %x [[0, 1], [2]] output_shape [%b, %l, 16] : tensor<?x16xf32> into tensor<?x?x16xf32>
  %e = tensor.empty(%b, %l) : tensor<?x?x16xf32>
  %0 = linalg.generic {indexing_maps = [#xyz, #xyz], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%h : tensor<?x?x16xf32>) outs(%e : tensor<?x?x16xf32>) {
  ^bb0(%a: f32, %o: f32):
    %1 = math.exp %a : f32
    linalg.yield %1 : f32
  } -> tensor<?x?x16xf32>
  return %0 : tensor<?x?x16xf32>
}

// -----

// As torch-mlir has views of extents that are not known.
// CHECK-LABEL: func.func @reshape
// CHECK-SAME: (%[[X:.*]]: tensor<?x16xf32>, %[[B:.*]]: i64, %[[L:.*]]: i64)
// CHECK: %[[R:.*]] = math.exp %[[X]] : tensor<?x16xf32>
// CHECK-NOT: tensor.reshape
// CHECK: return %[[R]]
func.func @reshape(%x: tensor<?x16xf32>, %b: i64, %l: i64) -> tensor<?x16xf32> {
  %n = arith.constant 16 : i64
  %s = tensor.from_elements %b, %l, %n : tensor<3xi64>
  %h = tensor.reshape %x(%s) : (tensor<?x16xf32>, tensor<3xi64>) -> tensor<?x?x16xf32>
  %0 = math.exp %h : tensor<?x?x16xf32>
  %c = tensor.collapse_shape %0 [[0, 1], [2]] : tensor<?x?x16xf32> into tensor<?x16xf32>
  return %c : tensor<?x16xf32>
}

// -----

// CHECK-LABEL: func.func @dynamic_slice
// CHECK: tensor.extract_slice %arg0[0, 0] [%{{.*}}, 8] [1, 1] : tensor<?x16xf32> to tensor<?x8xf32>
// CHECK: return {{.*}} : tensor<?x8xf32>
func.func @dynamic_slice(%x: tensor<?x16xf32>, %b: index, %l: index) -> tensor<?x8xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %h = tensor.expand_shape %x [[0, 1], [2]] output_shape [%b, %l, 16] : tensor<?x16xf32> into tensor<?x?x16xf32>
  %0 = tensor.dim %h, %c0 : tensor<?x?x16xf32>
  %1 = tensor.dim %h, %c1 : tensor<?x?x16xf32>
  %s = tensor.extract_slice %h[0, 0, 0] [%0, %1, 8] [1, 1, 1] : tensor<?x?x16xf32> to tensor<?x?x8xf32>
  %c = tensor.collapse_shape %s [[0, 1], [2]] : tensor<?x?x8xf32> into tensor<?x8xf32>
  return %c : tensor<?x8xf32>
}
