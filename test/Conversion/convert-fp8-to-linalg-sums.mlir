// RUN: fp8-opt %s --convert-fp8-to-linalg | FileCheck %s

!a_rows = !fp8.scaled<32x256xf8E4M3FN, block = [1, *], scale = f32>
!b_rows = !fp8.scaled<64x256xf8E4M3FN, block = [1, *], scale = f32>
!a_blocks = !fp8.scaled<32x400xf8E4M3FN, block = [1, 128], scale = f32>
!b_blocks = !fp8.scaled<64x400xf8E4M3FN, block = [128, 128], scale = f32>
!a_mxfp8 = !fp8.scaled<2x32x256xf8E4M3FN, block = [1, 1, 32], scale = f8E8M0FNU>
!b_mxfp8 = !fp8.scaled<2x256x64xf8E5M2, block = [1, 32, 1], scale = f8E8M0FNU>
!a_nvfp4 = !fp8.scaled<32x256xf4E2M1FN, block = [1, 16], scale = f8E4M3FN, tensor_scale = f32>
!b_nvfp4 = !fp8.scaled<64x256xf4E2M1FN, block = [1, 16], scale = f8E4M3FN, tensor_scale = f32>

// CHECK-DAG: #[[MAP_A:.*]] = affine_map<(d0, d1, d2, d3) -> (d0, d1, d3)>
// CHECK-DAG: #[[MAP_FA:.*]] = affine_map<(d0, d1, d2, d3) -> (d0, d1, d3 floordiv 32)>
// CHECK-DAG: #[[MAP_B:.*]] = affine_map<(d0, d1, d2, d3) -> (d0, d3, d2)>
// CHECK-DAG: #[[MAP_FB:.*]] = affine_map<(d0, d1, d2, d3) -> (d0, d3 floordiv 32, d2)>
// CHECK-DAG: #[[MAP_C:.*]] = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>

// Factors of rows multiply the sum, in any case; the contraction says how it is added up.
// CHECK-LABEL: @factors_of_rows
// CHECK:         linalg.contract
// CHECK-SAME:      {tensor_core_accumulation = array<i64: 0, 0, 128, 2, 1, 0>}
// CHECK-NOT:     linalg.contract
func.func @factors_of_rows(%a: !a_rows, %b: !b_rows) -> tensor<32x64xf32> {
  %0 = fp8.matmul %a, %b {tensor_core_accumulation = array<i64: 0, 0, 128, 2, 1, 0>}
    : !a_rows, !b_rows -> tensor<32x64xf32>
  return %0 : tensor<32x64xf32>
}

// Each block of K is a product of codes, which its factors multiply while it is added.
// CHECK-LABEL: @factors_of_blocks
// CHECK:         %[[SUM:.*]] = scf.for %[[BLOCK:.*]] = %{{.*}} to %{{.*}} step %{{.*}} iter_args(%[[CARRIED:.*]] = %{{.*}}) -> (tensor<32x64xf32>)
// CHECK:           %[[TERMS:.*]] = linalg.contract
// CHECK-SAME:        {tensor_core_accumulation = array<i64: 0, 0, 128, 1, 0, 0>}
// CHECK:           %[[FA:.*]] = tensor.extract_slice %{{.*}}[0, %[[BLOCK]]] [32, 1] [1, 1]
// CHECK:           %[[FB:.*]] = tensor.extract_slice %{{.*}}[0, %[[BLOCK]]] [1, 1] [1, 1]
// CHECK:           linalg.generic {{.*}} ins(%[[TERMS]], %[[FA]], %[[FB]] : {{.*}}) outs(%[[CARRIED]] : tensor<32x64xf32>)
// CHECK-NEXT:      ^bb0(%[[TERM:.*]]: f32, %[[X:.*]]: f32, %[[Y:.*]]: f32, %[[OUT:.*]]: f32):
// CHECK-NEXT:        %[[FACTOR:.*]] = arith.mulf %[[X]], %[[Y]] : f32
// CHECK-NEXT:        math.fma %[[TERM]], %[[FACTOR]], %[[OUT]] : f32
// CHECK-NOT:     scf.for
func.func @factors_of_blocks(%a: !a_blocks, %b: !b_blocks) -> tensor<32x64xf32> {
  %0 = fp8.matmul %a, %b {tensor_core_accumulation = array<i64: 0, 0, 128, 1, 1, 0>}
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
  %0 = fp8.matmul %a, %b {tensor_core_accumulation = array<i64: 0, 0, 128, 2, 1, 0>}
    : !a_blocks, !b_blocks -> tensor<32x64xf32>
  return %0 : tensor<32x64xf32>
}

// Tensor cores of Blackwell multiply factors of 32 and of 16: they stand beside the codes.
// CHECK-LABEL: @factors_in_the_tensor_core
// CHECK-NOT:     scf.for
// CHECK:         linalg.generic {indexing_maps = [#[[MAP_A]], #[[MAP_FA]], #[[MAP_B]], #[[MAP_FB]], #[[MAP_C]]], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
// CHECK-SAME:      ins(%{{.*}} : tensor<2x32x256xf32>, tensor<2x32x8xf32>, tensor<2x256x64xf32>, tensor<2x8x64xf32>)
// CHECK-SAME:      tensor_core_accumulation = array<i64: 0, 1, 128, 2, 0, 1>
// CHECK-NEXT:    ^bb0(%[[X:.*]]: f32, %[[FX:.*]]: f32, %[[Y:.*]]: f32, %[[FY:.*]]: f32, %[[SUM:.*]]: f32):
// CHECK-NEXT:      %[[XS:.*]] = arith.mulf %[[X]], %[[FX]]
// CHECK-NEXT:      %[[YS:.*]] = arith.mulf %[[Y]], %[[FY]]
// CHECK-NEXT:      %[[PRODUCT:.*]] = arith.mulf %[[XS]], %[[YS]]
// CHECK-NEXT:      arith.addf %[[SUM]], %[[PRODUCT]]
func.func @factors_in_the_tensor_core(%a: !a_mxfp8, %b: !b_mxfp8) -> tensor<2x32x64xf32> {
  %0 = fp8.matmul %a, %b transpose_b {tensor_core_accumulation = array<i64: 0, 1, 128, 2, 0, 1>}
    : !a_mxfp8, !b_mxfp8 -> tensor<2x32x64xf32>
  return %0 : tensor<2x32x64xf32>
}

// Those of the tensors multiply the sum.
// CHECK-LABEL: @factors_of_tensors
// CHECK:         %[[SUM:.*]] = linalg.generic {{.*}}tensor_core_accumulation = array<i64: 5, 5, 256, 1, 0, 1>
// CHECK:         linalg.generic {{.*}} ins(%[[SUM]], %{{.*}}, %{{.*}} : tensor<32x64xf32>, tensor<1x1xf32>, tensor<1x1xf32>)
// CHECK-NEXT:    ^bb0(%[[ACC:.*]]: f32, %[[TA:.*]]: f32, %[[TB:.*]]: f32, %{{.*}}: f32):
// CHECK-NEXT:      %[[FACTOR:.*]] = arith.mulf %[[TA]], %[[TB]] : f32
// CHECK-NEXT:      arith.mulf %[[ACC]], %[[FACTOR]] : f32
func.func @factors_of_tensors(%a: !a_nvfp4, %b: !b_nvfp4) -> tensor<32x64xf32> {
  %0 = fp8.matmul %a, %b {tensor_core_accumulation = array<i64: 5, 5, 256, 1, 0, 1>}
    : !a_nvfp4, !b_nvfp4 -> tensor<32x64xf32>
  return %0 : tensor<32x64xf32>
}

// Hopper's tensor cores add up 32, whose factors multiply that. A part of K begins
// with a block, of which there are two, of four sums each.
!a_mx = !fp8.scaled<32x256xf8E4M3FN, block = [1, 32], scale = f8E8M0FNU>
!b_mx = !fp8.scaled<64x256xf8E4M3FN, block = [1, 32], scale = f8E8M0FNU>
// CHECK-LABEL: @sums_of_32
// CHECK:         scf.for %{{.*}} = %{{c0.*}} to %{{c4.*}} step
// CHECK:           linalg.contract
// CHECK-SAME:        {tensor_core_accumulation = array<i64: 0, 0, 128, 1, 0, 0>}
// CHECK:           ^bb0(%[[SUM:.*]]: f32, %[[FA:.*]]: f8E8M0FNU, %[[FB:.*]]: f8E8M0FNU, %[[OLD:.*]]: f32):
// CHECK:           %[[FACTOR:.*]] = arith.mulf %{{.*}}, %{{.*}} : f32
// CHECK-NEXT:      math.fma %[[SUM]], %[[FACTOR]], %[[OLD]] : f32
// CHECK:         scf.for %{{.*}} = %{{c4.*}} to %{{c8.*}} step
func.func @sums_of_32(%a: !a_mx, %b: !b_mx) -> tensor<32x64xf32> {
  %0 = fp8.matmul %a, %b {tensor_core_accumulation = array<i64: 0, 0, 128, 2, 1, 0, 32>}
    : !a_mx, !b_mx -> tensor<32x64xf32>
  return %0 : tensor<32x64xf32>
}

// A kernel's epilogue has one rounding for a product and the sum that it goes to.
// CHECK-LABEL: @epilogue
// CHECK:           %[[FACTOR:.*]] = arith.mulf %{{.*}}, %{{.*}} : f32
// CHECK-NEXT:      %[[SCALED:.*]] = arith.mulf %{{.*}}, %[[FACTOR]] : f32
// CHECK-NEXT:      arith.addf %[[SCALED]], %{{.*}} : f32
// CHECK-LABEL: @epilogue_of_a_kernel
// CHECK:         ^bb0(%[[ACC:.*]]: f32, %[[FA:.*]]: f32, %[[FB:.*]]: f32, %[[O:.*]]: f32, %{{.*}}: f32):
// CHECK-NEXT:      %[[FACTOR:.*]] = arith.mulf %[[FA]], %[[FB]] : f32
// CHECK-NEXT:      %[[SCALED:.*]] = arith.mulf %[[ACC]], %[[FACTOR]] : f32
// CHECK-NEXT:      %[[SUM:.*]] = math.fma %[[ACC]], %[[FACTOR]], %[[O]] : f32
// CHECK-NEXT:      %[[SQUARE:.*]] = arith.mulf %[[SUM]], %[[SUM]] : f32
// CHECK-NEXT:      %[[NEGATED:.*]] = arith.negf %[[SUM]] : f32
// CHECK-NEXT:      %[[REST:.*]] = math.fma %[[NEGATED]], %[[SUM]], %[[O]] : f32
// CHECK-NEXT:      linalg.yield %[[REST]] : f32
func.func @epilogue(%a: !a_rows, %b: !b_rows, %o: tensor<32x64xf32>) -> tensor<32x64xf32> {
  %0 = fp8.matmul %a, %b epilogue(%o : tensor<32x64xf32>) {
  ^bb0(%acc: f32, %x: f32):
    %sum = arith.addf %acc, %x : f32
    fp8.yield %sum : f32
  } : !a_rows, !b_rows -> tensor<32x64xf32>
  return %0 : tensor<32x64xf32>
}
func.func @epilogue_of_a_kernel(%a: !a_rows, %b: !b_rows, %o: tensor<32x64xf32>) -> tensor<32x64xf32> {
  %0 = fp8.matmul %a, %b epilogue(%o : tensor<32x64xf32>) {
  ^bb0(%acc: f32, %x: f32):
    %sum = arith.addf %acc, %x : f32
    %square = arith.mulf %sum, %sum : f32
    %rest = arith.subf %x, %square : f32
    fp8.yield %rest : f32
  } {tensor_core_accumulation = array<i64: 0, 0, 128, 2, 1, 0>} : !a_rows, !b_rows -> tensor<32x64xf32>
  return %0 : tensor<32x64xf32>
}

// What is around the epilogue may be the other term.
// CHECK-LABEL: @constant_around_the_epilogue
// CHECK-DAG:       %[[ONE:.*]] = arith.constant 1.000000e+00 : f32
// CHECK:         ^bb0(%[[ACC:.*]]: f32, %[[FA:.*]]: f32, %[[FB:.*]]: f32, %{{.*}}: f32):
// CHECK-NEXT:      %[[FACTOR:.*]] = arith.mulf %[[FA]], %[[FB]] : f32
// CHECK:           %[[NEGATED:.*]] = arith.negf %[[ONE]] : f32
// CHECK-NEXT:      math.fma %[[ACC]], %[[FACTOR]], %[[NEGATED]] : f32
func.func @constant_around_the_epilogue(%a: !a_rows, %b: !b_rows) -> tensor<32x64xf32> {
  %one = arith.constant 1.0 : f32
  %0 = fp8.matmul %a, %b epilogue {
  ^bb0(%acc: f32):
    %rest = arith.subf %acc, %one : f32
    fp8.yield %rest : f32
  } {tensor_core_accumulation = array<i64: 0, 0, 128, 2, 1, 0>} : !a_rows, !b_rows -> tensor<32x64xf32>
  return %0 : tensor<32x64xf32>
}

// Magnitudes, roots and rounding to integers are what they are on a GPU, so
// that there is one rounding beside them, too; functions are not.
// CHECK-LABEL: @magnitude_beside_a_product
// CHECK:           %[[FACTOR:.*]] = arith.mulf %{{.*}}, %{{.*}} : f32
// CHECK-NEXT:      %[[SCALED:.*]] = arith.mulf %[[ACC:[a-z0-9_]+]], %[[FACTOR]] : f32
// CHECK-NEXT:      %[[MAGNITUDE:.*]] = math.absf %[[SCALED]] : f32
// CHECK-NEXT:      %[[NEGATED:.*]] = arith.negf %[[ACC]] : f32
// CHECK-NEXT:      math.fma %[[NEGATED]], %[[FACTOR]], %[[MAGNITUDE]] : f32
// CHECK-LABEL: @function_beside_a_product
// CHECK:           %[[FACTOR:.*]] = arith.mulf %{{.*}}, %{{.*}} : f32
// CHECK-NEXT:      %[[SCALED:.*]] = arith.mulf %{{.*}}, %[[FACTOR]] : f32
// CHECK-NEXT:      %[[FUNCTION:.*]] = math.exp %[[SCALED]] : f32
// CHECK-NEXT:      arith.subf %[[FUNCTION]], %[[SCALED]] : f32
func.func @magnitude_beside_a_product(%a: !a_rows, %b: !b_rows) -> tensor<32x64xf32> {
  %0 = fp8.matmul %a, %b epilogue {
  ^bb0(%acc: f32):
    %magnitude = math.absf %acc : f32
    %rest = arith.subf %magnitude, %acc : f32
    fp8.yield %rest : f32
  } {tensor_core_accumulation = array<i64: 0, 0, 128, 2, 1, 0>} : !a_rows, !b_rows -> tensor<32x64xf32>
  return %0 : tensor<32x64xf32>
}
func.func @function_beside_a_product(%a: !a_rows, %b: !b_rows) -> tensor<32x64xf32> {
  %0 = fp8.matmul %a, %b epilogue {
  ^bb0(%acc: f32):
    %function = math.exp %acc : f32
    %rest = arith.subf %function, %acc : f32
    fp8.yield %rest : f32
  } {tensor_core_accumulation = array<i64: 0, 0, 128, 2, 1, 0>} : !a_rows, !b_rows -> tensor<32x64xf32>
  return %0 : tensor<32x64xf32>
}
