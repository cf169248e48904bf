// RUN: fp8-opt %s --fp8-simplify-casts --cse --split-input-file | FileCheck %s

!t = tensor<4x64xf32>
!q = !fp8.scaled<4x64xf8E4M3FN, block = [*, *], scale = f32>

// One quantize serves a tensor and its transpose.
// CHECK-LABEL: func.func @both_ways
// CHECK-NEXT: %[[Q:.*]] = fp8.quantize %arg0 recipe(#fp8.current)
// CHECK-NEXT: %[[T:.*]] = fp8.transpose %[[Q]] permutation = [1, 0]
// CHECK-NEXT: return %[[Q]], %[[T]]
func.func @both_ways(%x: !t) -> (!q, !fp8.scaled<64x4xf8E4M3FN, block = [*, *], scale = f32>) {
  %e = tensor.empty() : tensor<64x4xf32>
  %t = linalg.transpose ins(%x : !t) outs(%e : tensor<64x4xf32>) permutation = [1, 0]
  %0 = fp8.quantize %x recipe(#fp8.current) : !t -> !q
  %1 = fp8.quantize %t recipe(#fp8.current) : tensor<64x4xf32> -> !fp8.scaled<64x4xf8E4M3FN, block = [*, *], scale = f32>
  return %0, %1 : !q, !fp8.scaled<64x4xf8E4M3FN, block = [*, *], scale = f32>
}

// -----

// Blocks run along K: each way needs a quantize of its own, both from x.
// CHECK-LABEL: func.func @both_ways_mxfp8
// CHECK-DAG: fp8.quantize %arg0 {{.*}} -> <64x64xf8E4M3FN, block = [1, 32]
// CHECK-DAG: %[[Q:.*]] = fp8.quantize %arg0 {{.*}} -> <64x64xf8E4M3FN, block = [32, 1]
// CHECK-DAG: fp8.transpose %[[Q]]
// CHECK-NOT: linalg.transpose
func.func @both_ways_mxfp8(%x: tensor<64x64xf32>) -> (!fp8.scaled<64x64xf8E4M3FN, block = [1, 32], scale = f8E8M0FNU>, !fp8.scaled<64x64xf8E4M3FN, block = [1, 32], scale = f8E8M0FNU>) {
  %e = tensor.empty() : tensor<64x64xf32>
  %t = linalg.transpose ins(%x : tensor<64x64xf32>) outs(%e : tensor<64x64xf32>) permutation = [1, 0]
  %0 = fp8.quantize %x recipe(#fp8.mxfp8) : tensor<64x64xf32> -> !fp8.scaled<64x64xf8E4M3FN, block = [1, 32], scale = f8E8M0FNU>
  %1 = fp8.quantize %t recipe(#fp8.mxfp8) : tensor<64x64xf32> -> !fp8.scaled<64x64xf8E4M3FN, block = [1, 32], scale = f8E8M0FNU>
  return %0, %1 : !fp8.scaled<64x64xf8E4M3FN, block = [1, 32], scale = f8E8M0FNU>, !fp8.scaled<64x64xf8E4M3FN, block = [1, 32], scale = f8E8M0FNU>
}

// -----

// CHECK-LABEL: func.func @quantize_of_collapse
// CHECK: %[[Q:.*]] = fp8.quantize %arg0 {{.*}} -> <2x4x64xf8E4M3FN, block = [1, 1, 32]
// CHECK-NOT: fp8.quantize
// CHECK: %[[P:[^,]*]], %[[S:[^ ]*]] = fp8.disassemble %[[Q]]
// CHECK-DAG: tensor.collapse_shape %[[P]] {{\[}}[0, 1], [2]] : tensor<2x4x64xf8E4M3FN> into tensor<8x64xf8E4M3FN>
// CHECK-DAG: tensor.collapse_shape %[[S]] {{\[}}[0, 1], [2]] : tensor<2x4x2xf8E8M0FNU> into tensor<8x2xf8E8M0FNU>
// CHECK: fp8.assemble
func.func @quantize_of_collapse(%x: tensor<2x4x64xf32>) -> (!fp8.scaled<8x64xf8E4M3FN, block = [1, 32], scale = f8E8M0FNU>, !fp8.scaled<2x4x64xf8E4M3FN, block = [1, 1, 32], scale = f8E8M0FNU>) {
  %c = tensor.collapse_shape %x [[0, 1], [2]] : tensor<2x4x64xf32> into tensor<8x64xf32>
  %0 = fp8.quantize %c recipe(#fp8.mxfp8) : tensor<8x64xf32> -> !fp8.scaled<8x64xf8E4M3FN, block = [1, 32], scale = f8E8M0FNU>
  %1 = fp8.quantize %x recipe(#fp8.mxfp8) : tensor<2x4x64xf32> -> !fp8.scaled<2x4x64xf8E4M3FN, block = [1, 1, 32], scale = f8E8M0FNU>
  return %0, %1 : !fp8.scaled<8x64xf8E4M3FN, block = [1, 32], scale = f8E8M0FNU>, !fp8.scaled<2x4x64xf8E4M3FN, block = [1, 1, 32], scale = f8E8M0FNU>
}

// There is nothing to share: rows are quantized as rows.
// CHECK-LABEL: func.func @quantize_of_rows
// CHECK: %[[C:.*]] = tensor.collapse_shape %arg0
// CHECK: fp8.quantize %[[C]]
func.func @quantize_of_rows(%x: tensor<2x4x64xf32>) -> !fp8.scaled<8x64xf8E4M3FN, block = [1, 32], scale = f8E8M0FNU> {
  %c = tensor.collapse_shape %x [[0, 1], [2]] : tensor<2x4x64xf32> into tensor<8x64xf32>
  %0 = fp8.quantize %c recipe(#fp8.mxfp8) : tensor<8x64xf32> -> !fp8.scaled<8x64xf8E4M3FN, block = [1, 32], scale = f8E8M0FNU>
  return %0 : !fp8.scaled<8x64xf8E4M3FN, block = [1, 32], scale = f8E8M0FNU>
}

// What computes batches quantizes them.
// CHECK-LABEL: func.func @quantize_of_computed_batches
// CHECK: %[[B:.*]] = linalg.broadcast
// CHECK: %[[E:.*]] = linalg.exp ins(%[[B]]
// CHECK: fp8.quantize %[[E]] {{.*}} -> <2x4x64xf8E4M3FN
func.func @quantize_of_computed_batches(%x: tensor<4x64xf32>) -> !fp8.scaled<8x64xf8E4M3FN, block = [1, 32], scale = f8E8M0FNU> {
  %e = tensor.empty() : tensor<2x4x64xf32>
  %b = linalg.broadcast ins(%x : tensor<4x64xf32>) outs(%e : tensor<2x4x64xf32>) dimensions = [0]
  %y = linalg.exp ins(%b : tensor<2x4x64xf32>) outs(%e : tensor<2x4x64xf32>) -> tensor<2x4x64xf32>
  %c = tensor.collapse_shape %y [[0, 1], [2]] : tensor<2x4x64xf32> into tensor<8x64xf32>
  %0 = fp8.quantize %c recipe(#fp8.mxfp8) : tensor<8x64xf32> -> !fp8.scaled<8x64xf8E4M3FN, block = [1, 32], scale = f8E8M0FNU>
  return %0 : !fp8.scaled<8x64xf8E4M3FN, block = [1, 32], scale = f8E8M0FNU>
}

// A block of 32 may end in the middle of a row of 16.
// CHECK-LABEL: func.func @block_straddles
// CHECK: %[[C:.*]] = tensor.collapse_shape %arg0
// CHECK: fp8.quantize %[[C]]
func.func @block_straddles(%x: tensor<8x4x16xf32>) -> !fp8.scaled<8x64xf8E4M3FN, block = [1, 32], scale = f8E8M0FNU> {
  %c = tensor.collapse_shape %x [[0], [1, 2]] : tensor<8x4x16xf32> into tensor<8x64xf32>
  %0 = fp8.quantize %c recipe(#fp8.mxfp8) : tensor<8x64xf32> -> !fp8.scaled<8x64xf8E4M3FN, block = [1, 32], scale = f8E8M0FNU>
  return %0 : !fp8.scaled<8x64xf8E4M3FN, block = [1, 32], scale = f8E8M0FNU>
}

// CHECK-LABEL: func.func @quantize_of_expand
// CHECK: fp8.quantize %arg0 {{.*}} -> <64xf8E4M3FN, block = [*]
// CHECK: fp8.assemble {{.*}} -> <1x64xf8E4M3FN, block = [*, *]
func.func @quantize_of_expand(%x: tensor<64xf32>) -> !fp8.scaled<1x64xf8E4M3FN, block = [*, *], scale = f32> {
  %c = tensor.expand_shape %x [[0, 1]] output_shape [1, 64] : tensor<64xf32> into tensor<1x64xf32>
  %0 = fp8.quantize %c recipe(#fp8.current) : tensor<1x64xf32> -> !fp8.scaled<1x64xf8E4M3FN, block = [*, *], scale = f32>
  return %0 : !fp8.scaled<1x64xf8E4M3FN, block = [*, *], scale = f32>
}

// The amax of a slice is not that of the tensor.
// CHECK-LABEL: func.func @slice_stays_above
// CHECK: %[[S:.*]] = tensor.extract_slice
// CHECK: fp8.quantize %[[S]]
func.func @slice_stays_above(%x: tensor<8x64xf32>) -> !fp8.scaled<4x64xf8E4M3FN, block = [*, *], scale = f32> {
  %s = tensor.extract_slice %x[0, 0] [4, 64] [1, 1] : tensor<8x64xf32> to tensor<4x64xf32>
  %0 = fp8.quantize %s recipe(#fp8.current) : tensor<4x64xf32> -> !fp8.scaled<4x64xf8E4M3FN, block = [*, *], scale = f32>
  return %0 : !fp8.scaled<4x64xf8E4M3FN, block = [*, *], scale = f32>
}
