// RUN: fp8-opt %s --fp8-fuse-elementwise | FileCheck %s

// CHECK-DAG: #[[ROW:.+]] = affine_map<(d0, d1) -> (d0)>
// CHECK-DAG: #[[FIRST:.+]] = affine_map<(d0, d1) -> (d0, 0)>

#full = affine_map<(i, j) -> (i, j)>
#first = affine_map<(i, j) -> (i, 0)>
#row = affine_map<(i, j) -> (i)>
!b = tensor<4x8xbf16>
!f = tensor<4x8xf32>

// Who reads a widened tensor reads the narrow one, and what makes that is not
// asked to write more than it has.

// CHECK-LABEL: func.func @widened(
// CHECK-SAME:  %[[X:.+]]: tensor<4x8xbf16>, %[[Y:.+]]: tensor<4x8xbf16>, %[[C:.+]]: tensor<4x8xf32>
// CHECK:       %[[SUM:.+]] = linalg.generic {{.*}} ins(%[[X]], %[[Y]] : {{.*}} outs(%{{.+}} : tensor<4x8xbf16>)
// CHECK:       linalg.generic {{.*}} ins(%[[SUM]], %[[C]] : tensor<4x8xbf16>, tensor<4x8xf32>)
// CHECK:         arith.extf
// CHECK-NEXT:    arith.mulf
// CHECK:       linalg.generic {{.*}} ins(%[[SUM]], %[[C]] : tensor<4x8xbf16>, tensor<4x8xf32>)
// CHECK:         arith.extf
// CHECK-NEXT:    arith.addf
func.func @widened(%x: !b, %y: !b, %c: !f) -> (!f, !f) {
  %eb = tensor.empty() : !b
  %e = tensor.empty() : !f
  %sum = linalg.add ins(%x, %y : !b, !b) outs(%eb : !b) -> !b
  %wide = linalg.generic {indexing_maps = [#full, #full], iterator_types = ["parallel", "parallel"]}
      ins(%sum : !b) outs(%e : !f) {
  ^bb0(%in: bf16, %out: f32):
    %0 = arith.extf %in : bf16 to f32
    linalg.yield %0 : f32
  } -> !f
  %m = linalg.mul ins(%wide, %c : !f, !f) outs(%e : !f) -> !f
  %a = linalg.add ins(%wide, %c : !f, !f) outs(%e : !f) -> !f
  return %m, %a : !f, !f
}

// A reduction computes nothing itself: the widening stays in front of it, alone.

// CHECK-LABEL: func.func @widened_for_sum(
// CHECK:       %[[SUM:.+]] = linalg.generic {{.*}} outs(%{{.+}} : tensor<4x8xbf16>)
// CHECK:       %[[WIDE:.+]] = linalg.generic {{.*}} ins(%[[SUM]] : tensor<4x8xbf16>)
// CHECK:       linalg.generic {{.*}}"reduction"]} ins(%[[WIDE]] :
func.func @widened_for_sum(%x: !b, %y: !b, %init: tensor<4xf32>) -> tensor<4xf32> {
  %eb = tensor.empty() : !b
  %e = tensor.empty() : !f
  %sum = linalg.add ins(%x, %y : !b, !b) outs(%eb : !b) -> !b
  %wide = linalg.generic {indexing_maps = [#full, #full], iterator_types = ["parallel", "parallel"]}
      ins(%sum : !b) outs(%e : !f) {
  ^bb0(%in: bf16, %out: f32):
    %0 = arith.extf %in : bf16 to f32
    linalg.yield %0 : f32
  } -> !f
  %s = linalg.generic {indexing_maps = [#full, #row], iterator_types = ["parallel", "reduction"]}
      ins(%wide : !f) outs(%init : tensor<4xf32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = arith.addf %in, %out : f32
    linalg.yield %0 : f32
  } -> tensor<4xf32>
  return %s : tensor<4xf32>
}

// Unit dimensions are read through, those that a reshape removes and adds.

// CHECK-LABEL: func.func @unit_dims(
// CHECK-SAME:  %[[X:.+]]: tensor<4x8xf32>, %[[A:.+]]: tensor<4x1xf32>, %[[B:.+]]: tensor<4xf32>
// CHECK-NOT:   tensor.collapse_shape
// CHECK-NOT:   tensor.expand_shape
// CHECK:       linalg.generic {indexing_maps = [#{{.+}}, #[[FIRST]], #[[ROW]], #{{.+}}], {{.*}} ins(%[[X]], %[[A]], %[[B]] :
func.func @unit_dims(%x: !f, %a: tensor<4x1xf32>, %b: tensor<4xf32>) -> !f {
  %e = tensor.empty() : !f
  %ac = tensor.collapse_shape %a [[0, 1]] : tensor<4x1xf32> into tensor<4xf32>
  %be = tensor.expand_shape %b [[0, 1]] output_shape [4, 1] : tensor<4xf32> into tensor<4x1xf32>
  %0 = linalg.generic {indexing_maps = [#full, #row, #first, #full], iterator_types = ["parallel", "parallel"]}
      ins(%x, %ac, %be : !f, tensor<4xf32>, tensor<4x1xf32>) outs(%e : !f) {
  ^bb0(%in: f32, %in_a: f32, %in_b: f32, %out: f32):
    %1 = arith.mulf %in, %in_a : f32
    %2 = arith.mulf %1, %in_b : f32
    linalg.yield %2 : f32
  } -> !f
  return %0 : !f
}

// Dimensions of several elements are no unit dimensions.

// CHECK-LABEL: func.func @flattened(
// CHECK:       tensor.collapse_shape
func.func @flattened(%x: tensor<2x4x8xf32>, %y: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %e = tensor.empty() : tensor<8x8xf32>
  %c = tensor.collapse_shape %x [[0, 1], [2]] : tensor<2x4x8xf32> into tensor<8x8xf32>
  %0 = linalg.add ins(%c, %y : tensor<8x8xf32>, tensor<8x8xf32>) outs(%e : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}

// All dimensions are of one element.

// CHECK-LABEL: func.func @single(
// CHECK-SAME:  %{{.+}}: tensor<4x8xf32>, %[[S:.+]]: tensor<1x1xf32>
// CHECK-NOT:   tensor.collapse_shape
func.func @single(%x: !f, %s: tensor<1x1xf32>) -> !f {
  %e = tensor.empty() : !f
  %c = tensor.collapse_shape %s [] : tensor<1x1xf32> into tensor<f32>
  %0 = linalg.generic {indexing_maps = [#full, affine_map<(i, j) -> ()>, #full], iterator_types = ["parallel", "parallel"]}
      ins(%x, %c : !f, tensor<f32>) outs(%e : !f) {
  ^bb0(%in: f32, %in_s: f32, %out: f32):
    %1 = arith.mulf %in, %in_s : f32
    linalg.yield %1 : f32
  } -> !f
  return %0 : !f
}
