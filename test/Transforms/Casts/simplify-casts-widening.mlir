// RUN: fp8-opt %s --fp8-simplify-casts | FileCheck %s

// Numbers that are only widened are quantized before, and before they were
// transposed.

#full = affine_map<(i, j) -> (i, j)>
#recipe = #fp8.delayed<>
!narrow = tensor<32x64xbf16>
!turned = tensor<64x32xbf16>
!wide = tensor<64x32xf32>
!q = !fp8.scaled<64x32xf8E4M3FN, block = [*, *], scale = f32>

// CHECK-LABEL: func.func @widened(
// CHECK-SAME:  %[[X:.+]]: tensor<32x64xbf16>
// CHECK:       %[[Q:.+]] = fp8.quantize %[[X]] recipe(
// CHECK-NEXT:  fp8.transpose %[[Q]]
func.func @widened(%x: !narrow) -> !q {
  %e = tensor.empty() : !turned
  %t = linalg.transpose ins(%x : !narrow) outs(%e : !turned) permutation = [1, 0]
  %ew = tensor.empty() : !wide
  %w = linalg.generic {indexing_maps = [#full, #full], iterator_types = ["parallel", "parallel"]}
      ins(%t : !turned) outs(%ew : !wide) {
  ^bb0(%in: bf16, %out: f32):
    %0 = arith.extf %in : bf16 to f32
    linalg.yield %0 : f32
  } -> !wide
  %q = fp8.quantize %w recipe(#recipe) : !wide -> !q
  return %q : !q
}

// What is computed as well is not.

// CHECK-LABEL: func.func @doubled(
// CHECK:       linalg.transpose
// CHECK:       linalg.generic
func.func @doubled(%x: !narrow) -> !q {
  %e = tensor.empty() : !turned
  %t = linalg.transpose ins(%x : !narrow) outs(%e : !turned) permutation = [1, 0]
  %ew = tensor.empty() : !wide
  %w = linalg.generic {indexing_maps = [#full, #full], iterator_types = ["parallel", "parallel"]}
      ins(%t : !turned) outs(%ew : !wide) {
  ^bb0(%in: bf16, %out: f32):
    %0 = arith.extf %in : bf16 to f32
    %1 = arith.addf %0, %0 : f32
    linalg.yield %1 : f32
  } -> !wide
  %q = fp8.quantize %w recipe(#recipe) : !wide -> !q
  return %q : !q
}
