// RUN: fp8-opt %s --fp8-form-fusions --canonicalize | FileCheck %s

#full = affine_map<(i, j) -> (i, j)>
#first = affine_map<(i, j) -> (i, 0)>
!x = tensor<32x64xbf16>
!f = tensor<32x64xf32>
!r = tensor<32x1xf32>
!q = !fp8.scaled<32x64xf8E4M3FN, block = [*, *], scale = f32>

// The second pass needs an operation that needs the first one, and both need a
// number that is half as much to read before it is computed: it is computed
// twice.

// CHECK-LABEL: func.func @again(
// CHECK-SAME:  %[[X:.+]]: tensor<32x64xbf16>, %[[R:.+]]: tensor<32x1xf32>,
// CHECK:       fp8.fusion(%[[X]], %[[R]]
// CHECK:         fp8.yield %{{[^,]+}} : tensor<32x64xf8E4M3FN>
// CHECK:       fp8.fusion(
// CHECK-SAME:  %[[X]], %[[R]]
// CHECK:         arith.extf
// CHECK:         fp8.yield %{{[^,]+}} : tensor<32x64xf32>
func.func @again(%x: !x, %rows: !r, %s: tensor<1x1xf32>, %si: tensor<1x1xf32>) -> !f {
  %e = tensor.empty() : !f
  %n = linalg.generic {indexing_maps = [#full, #first, #full], iterator_types = ["parallel", "parallel"]}
      ins(%x, %rows : !x, !r) outs(%e : !f) {
  ^bb0(%in: bf16, %in_r: f32, %out: f32):
    %0 = arith.extf %in : bf16 to f32
    %1 = arith.mulf %0, %in_r : f32
    linalg.yield %1 : f32
  } -> !f
  %q = fp8.quantize %n scale(%s, %si : tensor<1x1xf32>, tensor<1x1xf32>) : !f -> !q
  %y = call @work(%q) : (!q) -> !f
  %z = linalg.generic {indexing_maps = [#full, #full, #full], iterator_types = ["parallel", "parallel"]}
      ins(%n, %y : !f, !f) outs(%e : !f) {
  ^bb0(%in: f32, %in_y: f32, %out: f32):
    %0 = arith.mulf %in, %in_y : f32
    linalg.yield %0 : f32
  } -> !f
  return %z : !f
}

// What is more to read than its result is kept, and so is what takes long.

// CHECK-LABEL: func.func @kept(
// CHECK:       fp8.fusion(
// CHECK:         fp8.yield {{.+}} : tensor<32x64xbf16>, tensor<32x64xf8E4M3FN>
// CHECK-LABEL: func.func @long(
// CHECK:       fp8.fusion(
// CHECK:         fp8.yield {{.+}} : tensor<32x64xf32>, tensor<32x64xf8E4M3FN>
func.func @kept(%x: !x, %z: !x, %s: tensor<1x1xf32>, %si: tensor<1x1xf32>) -> !f {
  %e = tensor.empty() : !f
  %eb = tensor.empty() : !x
  %n = linalg.generic {indexing_maps = [#full, #full, #full], iterator_types = ["parallel", "parallel"]}
      ins(%x, %z : !x, !x) outs(%eb : !x) {
  ^bb0(%in: bf16, %in_z: bf16, %out: bf16):
    %0 = arith.mulf %in, %in_z : bf16
    linalg.yield %0 : bf16
  } -> !x
  %q = fp8.quantize %n scale(%s, %si : tensor<1x1xf32>, tensor<1x1xf32>) : !x -> !q
  %y = call @work(%q) : (!q) -> !f
  %r = linalg.generic {indexing_maps = [#full, #full, #full], iterator_types = ["parallel", "parallel"]}
      ins(%n, %y : !x, !f) outs(%e : !f) {
  ^bb0(%in: bf16, %in_y: f32, %out: f32):
    %0 = arith.extf %in : bf16 to f32
    %1 = arith.mulf %0, %in_y : f32
    linalg.yield %1 : f32
  } -> !f
  return %r : !f
}
func.func @long(%x: !x, %s: tensor<1x1xf32>, %si: tensor<1x1xf32>) -> !f {
  %e = tensor.empty() : !f
  %n = linalg.generic {indexing_maps = [#full, #full], iterator_types = ["parallel", "parallel"]}
      ins(%x : !x) outs(%e : !f) {
  ^bb0(%in: bf16, %out: f32):
    %0 = arith.extf %in : bf16 to f32
    %1 = math.erf %0 : f32
    linalg.yield %1 : f32
  } -> !f
  %q = fp8.quantize %n scale(%s, %si : tensor<1x1xf32>, tensor<1x1xf32>) : !f -> !q
  %y = call @work(%q) : (!q) -> !f
  %z = linalg.generic {indexing_maps = [#full, #full, #full], iterator_types = ["parallel", "parallel"]}
      ins(%n, %y : !f, !f) outs(%e : !f) {
  ^bb0(%in: f32, %in_y: f32, %out: f32):
    %0 = arith.mulf %in, %in_y : f32
    linalg.yield %0 : f32
  } -> !f
  return %z : !f
}
func.func private @work(!q) -> !f
