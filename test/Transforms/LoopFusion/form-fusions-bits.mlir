// RUN: fp8-opt %s --fp8-form-fusions --canonicalize | FileCheck %s

// Bodies that work on the bits of numbers are passes, too.

#id = affine_map<(i, j) -> (i, j)>
!x = tensor<32x32xbf16>
!f = tensor<32x32xf32>

// CHECK-LABEL: func.func @bits(
// CHECK: fp8.fusion(%arg0)
func.func @bits(%x: !x) -> !x {
  %e = tensor.empty() : !x
  %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : !x) outs(%e : !x) {
  ^bb0(%a: bf16, %o: bf16):
    %c = arith.constant 1 : i16
    %0 = arith.bitcast %a : bf16 to i16
    %1 = arith.xori %0, %c : i16
    %2 = arith.bitcast %1 : i16 to bf16
    linalg.yield %2 : bf16
  } -> !x
  return %y : !x
}

// CHECK-LABEL: func.func @bits_of_f32
// CHECK: fp8.fusion(%arg0)
// CHECK: arith.bitcast %{{.*}} : f32 to i32
func.func @bits_of_f32(%x: !f) -> tensor<32x32xi32> {
  %e = tensor.empty() : tensor<32x32xi32>
  %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : !f) outs(%e : tensor<32x32xi32>) {
  ^bb0(%a: f32, %o: i32):
    %0 = arith.bitcast %a : f32 to i32
    linalg.yield %0 : i32
  } -> tensor<32x32xi32>
  return %y : tensor<32x32xi32>
}
