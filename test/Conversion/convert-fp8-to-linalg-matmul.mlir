// RUN: fp8-opt %s --convert-fp8-to-linalg | FileCheck %s

!row = !fp8.scaled<4x8xf8E4M3FN, block = [1, *], scale = f32>
!mx = !fp8.scaled<4x64xf8E4M3FN, block = [1, 32], scale = f8E8M0FNU>

// CHECK-DAG: #[[ID:.*]] = affine_map<(d0, d1) -> (d0, d1)>
// CHECK-DAG: #[[OFA:.*]] = affine_map<(d0, d1) -> (d0, 0)>
// CHECK-DAG: #[[OFB:.*]] = affine_map<(d0, d1) -> (d1, 0)>
// CHECK-DAG: #[[BIAS:.*]] = affine_map<(d0, d1) -> (d1)>
// CHECK-DAG: #[[KM:.*]] = affine_map<(d0, d1, d2, d3) -> (d0, d3, d1)>
// CHECK-DAG: #[[KN:.*]] = affine_map<(d0, d1, d2, d3) -> (d0, d3, d2)>
// CHECK-DAG: #[[MN:.*]] = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>

// Factors that do not change along K come after the sum, in the pass over the
// result that the epilogue takes anyway.
// CHECK-LABEL: func.func @epilogue
// CHECK: %[[SUM:.*]] = linalg.contract
// CHECK: linalg.generic {indexing_maps = [#[[ID]], #[[OFA]], #[[OFB]], #[[BIAS]], #[[ID]]]{{.*}} ins(%[[SUM]], %arg1, %arg3, %arg4 :
// CHECK-NEXT: ^bb0(%[[ACC:.*]]: f32, %[[SA:.*]]: f32, %[[SB:.*]]: f32, %[[B:.*]]: bf16, %{{.*}}: bf16):
// CHECK-NEXT: %[[F:.*]] = arith.mulf %[[SA]], %[[SB]]
// CHECK-NEXT: %[[V:.*]] = arith.mulf %[[ACC]], %[[F]]
// CHECK-NEXT: %[[W:.*]] = arith.extf %[[B]]
// CHECK-NEXT: %[[S:.*]] = arith.addf %[[V]], %[[W]]
// CHECK-NEXT: %[[T:.*]] = arith.mulf %[[S]], %arg5
// CHECK-NEXT: arith.truncf %[[T]]
func.func @epilogue(%a: !row, %b: !row, %bias: tensor<4xbf16>, %alpha: f32) -> tensor<4x4xbf16> {
  %0 = fp8.matmul %a, %b epilogue(%bias : tensor<4xbf16>) {
  ^bb0(%acc: f32, %b0: bf16):
    %1 = arith.extf %b0 : bf16 to f32
    %2 = arith.addf %acc, %1 : f32
    %3 = arith.mulf %2, %alpha : f32
    %4 = arith.truncf %3 : f32 to bf16
    fp8.yield %4 : bf16
  } : !row, !row -> tensor<4x4xbf16>
  return %0 : tensor<4x4xbf16>
}

// Those of blocks along K go into the operands.
// CHECK-LABEL: func.func @blocks
// CHECK-COUNT-2: arith.extf %{{.*}} : f8E8M0FNU to f32
// CHECK: linalg.contract
// CHECK-NOT: f8E8M0FNU to f32
// CHECK: return
func.func @blocks(%a: !mx, %b: !mx) -> tensor<4x4xf32> {
  %0 = fp8.matmul %a, %b : !mx, !mx -> tensor<4x4xf32>
  return %0 : tensor<4x4xf32>
}

// A missing or unit dimension of an operand is repeated.
// CHECK-LABEL: func.func @broadcast
// CHECK: linalg.generic {{.*}} ins(%{{.*}}, %arg1, %arg3, %arg4, %arg5 : tensor<4x4xf32>, tensor<4x1xf32>, tensor<4x1xf32>, tensor<4x1xf32>, tensor<f32>)
func.func @broadcast(%a: !row, %b: !row, %column: tensor<4x1xf32>, %scalar: tensor<f32>) -> tensor<4x4xf32> {
  %0 = fp8.matmul %a, %b epilogue(%column, %scalar : tensor<4x1xf32>, tensor<f32>) {
  ^bb0(%acc: f32, %c: f32, %s: f32):
    %1 = arith.mulf %acc, %c : f32
    %2 = arith.addf %1, %s : f32
    fp8.yield %2 : f32
  } : !row, !row -> tensor<4x4xf32>
  return %0 : tensor<4x4xf32>
}

// A transposed operand is read in place.
// CHECK-LABEL: func.func @transposed
// CHECK: %[[A:.*]] = linalg.generic {{.*}} ins(%arg0 : tensor<8x4xf8E4M3FN>) outs(%{{.*}} : tensor<8x4xf32>)
// CHECK: linalg.contract {{.*}} ins(%[[A]],
func.func @transposed(%a: !fp8.scaled<8x4xf8E4M3FN, block = [*, *], scale = f32>, %b: !fp8.scaled<4x8xf8E4M3FN, block = [*, *], scale = f32>) -> tensor<4x4xf32> {
  %0 = fp8.transpose %a permutation = [1, 0] : !fp8.scaled<8x4xf8E4M3FN, block = [*, *], scale = f32>
  %1 = fp8.matmul %0, %b : !fp8.scaled<4x8xf8E4M3FN, block = [*, *], scale = f32>, !fp8.scaled<4x8xf8E4M3FN, block = [*, *], scale = f32> -> tensor<4x4xf32>
  return %1 : tensor<4x4xf32>
}

// Codes and what their amax is of come out of one pass over the accumulator.

// CHECK-LABEL: func.func @quantized
func.func @quantized(%a: !fp8.scaled<32x128xf8E4M3FN, block = [*, *], scale = f32>, %scale: f32) -> (tensor<32x32xf8E4M3FN>, tensor<1x1xf32>) {
  // CHECK: %[[BOTH:.*]]:2 = linalg.generic {{.*}} outs(%{{.*}}, %{{.*}} : tensor<32x32xf8E4M3FN>, tensor<32x32xf32>)
  // CHECK: linalg.yield %{{.*}}, %{{.*}} : f8E4M3FN, f32
  // CHECK: linalg.generic {{.*}} ins(%[[BOTH]]#1
  // CHECK: arith.andi
  // CHECK: arith.maxui
  // CHECK: return %[[BOTH]]#0
  %0:2 = fp8.matmul %a, %a epilogue {
  ^bb0(%acc: f32):
    %1 = arith.mulf %acc, %scale : f32
    %2 = arith.truncf %1 : f32 to f8E4M3FN
    fp8.yield %2, %acc : f8E4M3FN, f32
  } : !fp8.scaled<32x128xf8E4M3FN, block = [*, *], scale = f32>,
      !fp8.scaled<32x128xf8E4M3FN, block = [*, *], scale = f32> -> tensor<32x32xf8E4M3FN>, tensor<1x1xf32>
  return %0#0, %0#1 : tensor<32x32xf8E4M3FN>, tensor<1x1xf32>
}

// Operands in high precision have no factors: they are widened to f32, in which
// all is summed, and the result is rounded once.

// CHECK-LABEL: func.func @plain
// CHECK: %[[A:.*]] = linalg.generic {{.*}} ins(%arg0 : tensor<4x8xbf16>) outs(%{{.*}} : tensor<4x8xf32>)
// CHECK: arith.extf %{{.*}} : bf16 to f32
// CHECK: %[[B:.*]] = linalg.generic {{.*}} ins(%arg1 : tensor<6x8xbf16>) outs(%{{.*}} : tensor<6x8xf32>)
// CHECK: arith.extf %{{.*}} : bf16 to f32
// CHECK: %[[SUM:.*]] = linalg.contract {{.*}} ins(%[[A]], %[[B]] : tensor<4x8xf32>, tensor<6x8xf32>)
// CHECK: linalg.generic {{.*}} ins(%[[SUM]] : tensor<4x6xf32>)
// CHECK-NEXT: ^bb0(%[[ACC:.*]]: f32, %{{.*}}: bf16):
// CHECK-NEXT: arith.truncf %[[ACC]] : f32 to bf16
func.func @plain(%a: tensor<4x8xbf16>, %b: tensor<6x8xbf16>) -> tensor<4x6xbf16> {
  %0 = fp8.matmul %a, %b accumulate = fast : tensor<4x8xbf16>, tensor<6x8xbf16> -> tensor<4x6xbf16>
  return %0 : tensor<4x6xbf16>
}

// f32 is read as it is, whichever dimension is innermost.

// CHECK-LABEL: func.func @plain_transposed
// CHECK-NOT: linalg.transpose
// CHECK: linalg.contract indexing_maps = [#[[KM]], #[[KN]], #[[MN]]] ins(%arg0, %arg1 : tensor<2x8x4xf32>, tensor<2x8x6xf32>)
// CHECK-NOT: linalg.contract
func.func @plain_transposed(%a: tensor<2x8x4xf32>, %b: tensor<2x8x6xf32>) -> tensor<2x4x6xf32> {
  %0 = fp8.matmul %a, %b transpose_a transpose_b accumulate = fast : tensor<2x8x4xf32>, tensor<2x8x6xf32> -> tensor<2x4x6xf32>
  return %0 : tensor<2x4x6xf32>
}
