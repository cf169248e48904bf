// RUN: fp8-opt %s --fp8-simplify-casts --cse | FileCheck %s

// Rows that are looked up in a table kept in 8 bits are dequantized.

#rows = affine_map<(d0, d1) -> (d0)>
#all = affine_map<(d0, d1) -> (d0, d1)>
#batch = affine_map<(d0, d1, d2) -> (d0, d1)>
#full = affine_map<(d0, d1, d2) -> (d0, d1, d2)>

!mx = !fp8.scaled<1000x64xf8E4M3FN, block = [1, 32], scale = f8E8M0FNU>
!q = !fp8.scaled<1000x64xf8E4M3FN, block = [*, *], scale = f32>
!square = !fp8.scaled<1000x64xf8E4M3FN, block = [32, 32], scale = f32>

// CHECK-LABEL: func.func @embedding
// CHECK: %[[P:[^,]*]], %[[S:[^ ]*]] = fp8.disassemble %arg0
// CHECK: linalg.generic {{.*}} ins(%arg1 : tensor<8xi32>) outs(%{{.*}} : tensor<8x64xf8E4M3FN>)
// CHECK: tensor.extract %[[P]]
// CHECK: linalg.generic {{.*}} ins(%arg1 : tensor<8xi32>) outs(%{{.*}} : tensor<8x2xf8E8M0FNU>)
// CHECK: tensor.extract %[[S]]
// CHECK: fp8.dequantize %{{.*}} : <8x64xf8E4M3FN, block = [1, 32], scale = f8E8M0FNU> -> tensor<8x64xf32>
func.func @embedding(%q: !mx, %ids: tensor<8xi32>) -> tensor<8x64xf32> {
  %t = fp8.dequantize %q : !mx -> tensor<1000x64xf32>
  %e = tensor.empty() : tensor<8x64xf32>
  %0 = linalg.generic {indexing_maps = [#rows, #all], iterator_types = ["parallel", "parallel"]} ins(%ids : tensor<8xi32>) outs(%e : tensor<8x64xf32>) {
  ^bb0(%id: i32, %out: f32):
    %row = arith.index_cast %id : i32 to index
    %column = linalg.index 1 : index
    %v = tensor.extract %t[%row, %column] : tensor<1000x64xf32>
    linalg.yield %v : f32
  } -> tensor<8x64xf32>
  return %0 : tensor<8x64xf32>
}

// CHECK-LABEL: func.func @batched_per_tensor
// CHECK: %[[P:[^,]*]], %[[S:[^ ]*]] = fp8.disassemble %arg0
// CHECK: tensor.extract %[[P]]
// CHECK: tensor.collapse_shape %[[S]] [] : tensor<1x1xf32> into tensor<f32>
// CHECK: tensor.expand_shape %{{.*}} [] output_shape [1, 1, 1]
// CHECK: fp8.dequantize %{{.*}} : <2x8x64xf8E4M3FN, block = [*, *, *], scale = f32>
func.func @batched_per_tensor(%q: !q, %ids: tensor<2x8xi32>) -> tensor<2x8x64xf32> {
  %t = fp8.dequantize %q : !q -> tensor<1000x64xf32>
  %e = tensor.empty() : tensor<2x8x64xf32>
  %0 = linalg.generic {indexing_maps = [#batch, #full], iterator_types = ["parallel", "parallel", "parallel"]} ins(%ids : tensor<2x8xi32>) outs(%e : tensor<2x8x64xf32>) {
  ^bb0(%id: i32, %out: f32):
    %row = arith.index_cast %id : i32 to index
    %column = linalg.index 2 : index
    %v = tensor.extract %t[%row, %column] : tensor<1000x64xf32>
    linalg.yield %v : f32
  } -> tensor<2x8x64xf32>
  return %0 : tensor<2x8x64xf32>
}

// Rows of one block come to stand in several.
// CHECK-LABEL: func.func @blocks_of_rows
// CHECK: %[[T:.*]] = fp8.dequantize %arg0
// CHECK: tensor.extract %[[T]]
func.func @blocks_of_rows(%q: !square, %ids: tensor<8xi32>) -> tensor<8x64xf32> {
  %t = fp8.dequantize %q : !square -> tensor<1000x64xf32>
  %e = tensor.empty() : tensor<8x64xf32>
  %0 = linalg.generic {indexing_maps = [#rows, #all], iterator_types = ["parallel", "parallel"]} ins(%ids : tensor<8xi32>) outs(%e : tensor<8x64xf32>) {
  ^bb0(%id: i32, %out: f32):
    %row = arith.index_cast %id : i32 to index
    %column = linalg.index 1 : index
    %v = tensor.extract %t[%row, %column] : tensor<1000x64xf32>
    linalg.yield %v : f32
  } -> tensor<8x64xf32>
  return %0 : tensor<8x64xf32>
}

// The elements of a row in another order.
// CHECK-LABEL: func.func @columns_computed
// CHECK: %[[T:.*]] = fp8.dequantize %arg0
// CHECK: tensor.extract %[[T]]
func.func @columns_computed(%q: !mx, %ids: tensor<8xi32>) -> tensor<8x64xf32> {
  %t = fp8.dequantize %q : !mx -> tensor<1000x64xf32>
  %last = arith.constant 63 : index
  %e = tensor.empty() : tensor<8x64xf32>
  %0 = linalg.generic {indexing_maps = [#rows, #all], iterator_types = ["parallel", "parallel"]} ins(%ids : tensor<8xi32>) outs(%e : tensor<8x64xf32>) {
  ^bb0(%id: i32, %out: f32):
    %row = arith.index_cast %id : i32 to index
    %place = linalg.index 1 : index
    %column = arith.subi %last, %place : index
    %v = tensor.extract %t[%row, %column] : tensor<1000x64xf32>
    linalg.yield %v : f32
  } -> tensor<8x64xf32>
  return %0 : tensor<8x64xf32>
}

// The row depends on the column: a factor is of several.
// CHECK-LABEL: func.func @row_of_each_column
// CHECK: %[[T:.*]] = fp8.dequantize %arg0
// CHECK: tensor.extract %[[T]]
func.func @row_of_each_column(%q: !mx, %ids: tensor<8x64xi32>) -> tensor<8x64xf32> {
  %t = fp8.dequantize %q : !mx -> tensor<1000x64xf32>
  %e = tensor.empty() : tensor<8x64xf32>
  %0 = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel"]} ins(%ids : tensor<8x64xi32>) outs(%e : tensor<8x64xf32>) {
  ^bb0(%id: i32, %out: f32):
    %row = arith.index_cast %id : i32 to index
    %column = linalg.index 1 : index
    %v = tensor.extract %t[%row, %column] : tensor<1000x64xf32>
    linalg.yield %v : f32
  } -> tensor<8x64xf32>
  return %0 : tensor<8x64xf32>
}

// CHECK-LABEL: func.func @diagonal
// CHECK: %[[T:.*]] = fp8.dequantize %arg0
// CHECK: tensor.extract %[[T]]
func.func @diagonal(%q: !mx, %ids: tensor<8xi32>) -> tensor<8x64xf32> {
  %t = fp8.dequantize %q : !mx -> tensor<1000x64xf32>
  %e = tensor.empty() : tensor<8x64xf32>
  %0 = linalg.generic {indexing_maps = [#rows, #all], iterator_types = ["parallel", "parallel"]} ins(%ids : tensor<8xi32>) outs(%e : tensor<8x64xf32>) {
  ^bb0(%id: i32, %out: f32):
    %row = linalg.index 1 : index
    %column = linalg.index 1 : index
    %v = tensor.extract %t[%row, %column] : tensor<1000x64xf32>
    linalg.yield %v : f32
  } -> tensor<8x64xf32>
  return %0 : tensor<8x64xf32>
}

// The table is there anyway.
// CHECK-LABEL: func.func @table_needed
// CHECK: %[[T:.*]] = fp8.dequantize %arg0
// CHECK: tensor.extract %[[T]]
func.func @table_needed(%q: !q, %ids: tensor<8xi32>) -> (tensor<8x64xf32>, tensor<1000x64xf32>) {
  %t = fp8.dequantize %q : !q -> tensor<1000x64xf32>
  %e = tensor.empty() : tensor<8x64xf32>
  %0 = linalg.generic {indexing_maps = [#rows, #all], iterator_types = ["parallel", "parallel"]} ins(%ids : tensor<8xi32>) outs(%e : tensor<8x64xf32>) {
  ^bb0(%id: i32, %out: f32):
    %row = arith.index_cast %id : i32 to index
    %column = linalg.index 1 : index
    %v = tensor.extract %t[%row, %column] : tensor<1000x64xf32>
    linalg.yield %v : f32
  } -> tensor<8x64xf32>
  return %0, %t : tensor<8x64xf32>, tensor<1000x64xf32>
}

// More than three times as many elements as the table has.
// CHECK-LABEL: func.func @looked_up_often
// CHECK: %[[T:.*]] = fp8.dequantize %arg0
// CHECK: tensor.extract %[[T]]
func.func @looked_up_often(%q: !q, %ids: tensor<3001xi32>) -> tensor<3001x64xf32> {
  %t = fp8.dequantize %q : !q -> tensor<1000x64xf32>
  %e = tensor.empty() : tensor<3001x64xf32>
  %0 = linalg.generic {indexing_maps = [#rows, #all], iterator_types = ["parallel", "parallel"]} ins(%ids : tensor<3001xi32>) outs(%e : tensor<3001x64xf32>) {
  ^bb0(%id: i32, %out: f32):
    %row = arith.index_cast %id : i32 to index
    %column = linalg.index 1 : index
    %v = tensor.extract %t[%row, %column] : tensor<1000x64xf32>
    linalg.yield %v : f32
  } -> tensor<3001x64xf32>
  return %0 : tensor<3001x64xf32>
}
