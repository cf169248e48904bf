// RUN: fp8-opt %s --fp8-simplify-casts | FileCheck %s

// Bytes move instead of floats.

!row = !fp8.scaled<8x64xf8E4M3FN, block = [1, *], scale = f32>
!mx = !fp8.scaled<8x80xf8E4M3FN, block = [1, 32], scale = f8E8M0FNU>
!nv = !fp8.scaled<8x64xf4E2M1FN, block = [1, 16], scale = f8E4M3FN, tensor_scale = f32>

// CHECK-LABEL: func.func @transpose
// CHECK-NEXT: %[[T:.*]] = fp8.transpose %arg0 permutation = [1, 0]
// CHECK-NEXT: %[[D:.*]] = fp8.dequantize %[[T]] : <64x8xf8E4M3FN, block = [*, 1], scale = f32> -> tensor<64x8xbf16>
// CHECK-NEXT: return %[[D]]
func.func @transpose(%q: !row) -> tensor<64x8xbf16> {
  %0 = fp8.dequantize %q : !row -> tensor<8x64xbf16>
  %e = tensor.empty() : tensor<64x8xbf16>
  %1 = linalg.transpose ins(%0 : tensor<8x64xbf16>) outs(%e : tensor<64x8xbf16>) permutation = [1, 0]
  return %1 : tensor<64x8xbf16>
}

// Rows 2 to 5, of blocks 1 and 2 of which the second ends with the tensor.
// CHECK-LABEL: func.func @slice
// CHECK: %[[P:[^,]*]], %[[S:[^ ]*]] = fp8.disassemble %arg0
// CHECK: tensor.extract_slice %[[P]][2, 32] [4, 48] [1, 1]
// CHECK: tensor.extract_slice %[[S]][2, 1] [4, 2] [1, 1]
// CHECK: fp8.dequantize %{{.*}} : <4x48xf8E4M3FN, block = [1, 32], scale = f8E8M0FNU>
func.func @slice(%q: !mx) -> tensor<4x48xf32> {
  %0 = fp8.dequantize %q : !mx -> tensor<8x80xf32>
  %1 = tensor.extract_slice %0[2, 32] [4, 48] [1, 1] : tensor<8x80xf32> to tensor<4x48xf32>
  return %1 : tensor<4x48xf32>
}

// The factor of a whole row serves any part of it; the tensor's own stays.
// CHECK-LABEL: func.func @slice_whole
// CHECK: tensor.extract_slice %{{.*}}[1, 5] [2, 7] [1, 1]
// CHECK: tensor.extract_slice %{{.*}}[1, 0] [2, 1] [1, 1]
func.func @slice_whole(%q: !row) -> tensor<2x7xf32> {
  %0 = fp8.dequantize %q : !row -> tensor<8x64xf32>
  %1 = tensor.extract_slice %0[1, 5] [2, 7] [1, 1] : tensor<8x64xf32> to tensor<2x7xf32>
  return %1 : tensor<2x7xf32>
}

// CHECK-LABEL: func.func @slice_nvfp4
// CHECK: %{{[^,]*}}, %{{[^,]*}}, %[[T:[^ ]*]] = fp8.disassemble
// CHECK: fp8.assemble %{{.*}}, %{{.*}}, %[[T]] :
func.func @slice_nvfp4(%q: !nv) -> tensor<8x16xf32> {
  %0 = fp8.dequantize %q : !nv -> tensor<8x64xf32>
  %1 = tensor.extract_slice %0[0, 16] [8, 16] [1, 1] : tensor<8x64xf32> to tensor<8x16xf32>
  return %1 : tensor<8x16xf32>
}

// CHECK-LABEL: func.func @slice_cuts_a_block
// CHECK: %[[D:.*]] = fp8.dequantize %arg0
// CHECK: tensor.extract_slice %[[D]]
func.func @slice_cuts_a_block(%q: !mx) -> tensor<8x16xf32> {
  %0 = fp8.dequantize %q : !mx -> tensor<8x80xf32>
  %1 = tensor.extract_slice %0[0, 16] [8, 16] [1, 1] : tensor<8x80xf32> to tensor<8x16xf32>
  return %1 : tensor<8x16xf32>
}

// CHECK-LABEL: func.func @slice_dynamic
// CHECK: %[[D:.*]] = fp8.dequantize %arg0
// CHECK: tensor.extract_slice %[[D]]
func.func @slice_dynamic(%q: !row, %i: index) -> tensor<2x64xf32> {
  %0 = fp8.dequantize %q : !row -> tensor<8x64xf32>
  %1 = tensor.extract_slice %0[%i, 0] [2, 64] [1, 1] : tensor<8x64xf32> to tensor<2x64xf32>
  return %1 : tensor<2x64xf32>
}

// CHECK-LABEL: func.func @expand
// CHECK: tensor.expand_shape %{{.*}} : tensor<8x64xf8E4M3FN> into tensor<2x4x64xf8E4M3FN>
// CHECK: tensor.expand_shape %{{.*}} : tensor<8x1xf32> into tensor<2x4x1xf32>
// CHECK: fp8.dequantize %{{.*}} : <2x4x64xf8E4M3FN, block = [1, 1, *], scale = f32>
func.func @expand(%q: !row) -> tensor<2x4x64xf32> {
  %0 = fp8.dequantize %q : !row -> tensor<8x64xf32>
  %1 = tensor.expand_shape %0 [[0, 1], [2]] output_shape [2, 4, 64] : tensor<8x64xf32> into tensor<2x4x64xf32>
  return %1 : tensor<2x4x64xf32>
}

// Rows of a factor each, and a dimension within the row, do not become one.
// CHECK-LABEL: func.func @collapse_straddles
// CHECK: %[[D:.*]] = fp8.dequantize %arg0
// CHECK: tensor.collapse_shape %[[D]]
func.func @collapse_straddles(%q: !row) -> tensor<512xf32> {
  %0 = fp8.dequantize %q : !row -> tensor<8x64xf32>
  %1 = tensor.collapse_shape %0 [[0, 1]] : tensor<8x64xf32> into tensor<512xf32>
  return %1 : tensor<512xf32>
}
