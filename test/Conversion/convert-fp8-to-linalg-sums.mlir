// RUN: fp8-opt %s --convert-fp8-to-linalg | FileCheck %s

!a_rows = !fp8.scaled<32x256xf8E4M3FN, block = [1, *], scale = f32>
!b_rows = !fp8.scaled<64x256xf8E4M3FN, block = [1, *], scale = f32>
!a_blocks = !fp8.scaled<32x400xf8E4M3FN, block = [1, 128], scale = f32>
!b_blocks = !fp8.scaled<64x400xf8E4M3FN, block = [128, 128], scale = f32>

// Factors of rows multiply the sum, in any case; the contraction says how it is added up.
// CHECK-LABEL: @factors_of_rows
// CHECK:         linalg.contract
// CHECK-SAME:      {tensor_core_sums = array<i64: 0, 0, 128, 2, 1>}
// CHECK-NOT:     linalg.contract
func.func @factors_of_rows(%a: !a_rows, %b: !b_rows) -> tensor<32x64xf32> {
  %0 = fp8.matmul %a, %b {tensor_core_sums = array<i64: 0, 0, 128, 2, 1>}
    : !a_rows, !b_rows -> tensor<32x64xf32>
  return %0 : tensor<32x64xf32>
}

// Each block of K is a product of codes, which its factors multiply while it is added.
// CHECK-LABEL: @factors_of_blocks
// CHECK:         %[[SUM:.*]] = scf.for %[[BLOCK:.*]] = %{{.*}} to %{{.*}} step %{{.*}} iter_args(%[[CARRIED:.*]] = %{{.*}}) -> (tensor<32x64xf32>)
// CHECK:           %[[TERMS:.*]] = linalg.contract
// CHECK-SAME:        {tensor_core_sums = array<i64: 0, 0, 128, 1, 0>}
// CHECK:           %[[FA:.*]] = tensor.extract_slice %{{.*}}[0, %[[BLOCK]]] [32, 1] [1, 1]
// CHECK:           %[[FB:.*]] = tensor.extract_slice %{{.*}}[0, %[[BLOCK]]] [1, 1] [1, 1]
// CHECK:           linalg.generic {{.*}} ins(%[[TERMS]], %[[FA]], %[[FB]] : {{.*}}) outs(%[[CARRIED]] : tensor<32x64xf32>)
// CHECK-NEXT:      ^bb0(%[[TERM:.*]]: f32, %[[X:.*]]: f32, %[[Y:.*]]: f32, %[[OUT:.*]]: f32):
// CHECK-NEXT:        %[[FACTOR:.*]] = arith.mulf %[[X]], %[[Y]] : f32
// CHECK-NEXT:        math.fma %[[TERM]], %[[FACTOR]], %[[OUT]] : f32
// CHECK-NOT:     scf.for
func.func @factors_of_blocks(%a: !a_blocks, %b: !b_blocks) -> tensor<32x64xf32> {
  %0 = fp8.matmul %a, %b {tensor_core_sums = array<i64: 0, 0, 128, 1, 1>}
    : !a_blocks, !b_blocks -> tensor<32x64xf32>
  return %0 : tensor<32x64xf32>
}

// Parts of K by themselves.
// CHECK-LABEL: @parts_of_blocks
// CHECK:         %[[FIRST:.*]] = scf.for
// CHECK:         %[[SECOND:.*]] = scf.for
// CHECK:         linalg.generic {{.*}} ins(%[[FIRST]], %[[SECOND]] :
// CHECK:           arith.addf
func.func @parts_of_blocks(%a: !a_blocks, %b: !b_blocks) -> tensor<32x64xf32> {
  %0 = fp8.matmul %a, %b {tensor_core_sums = array<i64: 0, 0, 128, 2, 1>}
    : !a_blocks, !b_blocks -> tensor<32x64xf32>
  return %0 : tensor<32x64xf32>
}
