// RUN: fp8-opt %s --convert-fp8-to-linalg --canonicalize --cse | FileCheck %s

// Two codes of f4E2M1FN are a byte. Bytes move where rows stay whole, or are cut
// between bytes.

// CHECK-LABEL: func.func @slice_between_bytes(%arg0: tensor<4x16xi8>) -> tensor<2x4xi8>
// CHECK:       %[[S:.*]] = tensor.extract_slice %arg0[1, 2] [2, 4] [1, 1] : tensor<4x16xi8> to tensor<2x4xi8>
// CHECK-NEXT:  return %[[S]]
func.func @slice_between_bytes(%x: tensor<4x32xf4E2M1FN>) -> tensor<2x8xf4E2M1FN> {
  %0 = tensor.extract_slice %x[1, 4] [2, 8] [1, 1] : tensor<4x32xf4E2M1FN> to tensor<2x8xf4E2M1FN>
  return %0 : tensor<2x8xf4E2M1FN>
}

// CHECK-LABEL: func.func @rows(%arg0: tensor<2x3x8xi8>) -> tensor<6x4x2xi8>
// CHECK-NOT:   linalg.generic
// CHECK:       linalg.transpose ins(%arg0 : tensor<2x3x8xi8>) outs(%{{.*}} : tensor<3x2x8xi8>) permutation = [1, 0, 2]
// CHECK-NOT:   linalg.generic
// CHECK:       return %{{.*}} : tensor<6x4x2xi8>
func.func @rows(%x: tensor<2x3x16xf4E2M1FN>) -> tensor<6x4x4xf4E2M1FN> {
  %e = tensor.empty() : tensor<3x2x16xf4E2M1FN>
  %0 = linalg.transpose ins(%x : tensor<2x3x16xf4E2M1FN>) outs(%e : tensor<3x2x16xf4E2M1FN>) permutation = [1, 0, 2]
  %1 = tensor.collapse_shape %0 [[0, 1], [2]] : tensor<3x2x16xf4E2M1FN> into tensor<6x16xf4E2M1FN>
  %2 = tensor.expand_shape %1 [[0], [1, 2]] output_shape [6, 4, 4] : tensor<6x16xf4E2M1FN> into tensor<6x4x4xf4E2M1FN>
  return %2 : tensor<6x4x4xf4E2M1FN>
}

// Else codes are taken apart, moved, and put together again.

// CHECK-LABEL: func.func @slice_in_bytes(%arg0: tensor<4x16xi8>) -> tensor<4x4xi8>
// CHECK:       %[[CODES:.*]] = linalg.generic {{.*}} ins(%arg0 : tensor<4x16xi8>) outs(%{{.*}} : tensor<4x16x2xi8>)
// CHECK:         arith.shrui
// CHECK:       %[[ROWS:.*]] = tensor.collapse_shape %[[CODES]] {{\[}}[0], [1, 2]] : tensor<4x16x2xi8> into tensor<4x32xi8>
// CHECK:       %[[S:.*]] = tensor.extract_slice %[[ROWS]][0, 3] [4, 8] [1, 1] : tensor<4x32xi8> to tensor<4x8xi8>
// CHECK:       %[[PAIRS:.*]] = tensor.expand_shape %[[S]] {{\[}}[0], [1, 2]] output_shape [4, 4, 2] : tensor<4x8xi8> into tensor<4x4x2xi8>
// CHECK:       linalg.generic {{.*}} ins(%[[PAIRS]], %[[PAIRS]] : tensor<4x4x2xi8>, tensor<4x4x2xi8>) outs(%{{.*}} : tensor<4x4xi8>)
// CHECK:         arith.shli
func.func @slice_in_bytes(%x: tensor<4x32xf4E2M1FN>) -> tensor<4x8xf4E2M1FN> {
  %0 = tensor.extract_slice %x[0, 3] [4, 8] [1, 1] : tensor<4x32xf4E2M1FN> to tensor<4x8xf4E2M1FN>
  return %0 : tensor<4x8xf4E2M1FN>
}

// A row of an odd number of codes has a half byte more, which is zero.

// CHECK-LABEL: func.func @odd_row() -> tensor<2x2xi8>
// CHECK:       arith.constant dense<{{\[\[}}33, 4], [101, 7]]> : tensor<2x2xi8>
func.func @odd_row() -> tensor<2x3xf4E2M1FN> {
  %0 = arith.constant dense<[[0.5, 1.0, 2.0], [3.0, 4.0, 6.0]]> : tensor<2x3xf4E2M1FN>
  return %0 : tensor<2x3xf4E2M1FN>
}

// A number that only shows at run time is checked where codes leave.

// CHECK-LABEL: func.func @leave
// CHECK:       cf.assert %{{.*}}, "expected a last dimension of an even size, of which two codes of f4E2M1FN share a byte, but got an odd one"
!d = !fp8.scaled<?x?xf4E2M1FN, block = [*, *], scale = f32>
func.func @leave(%x: tensor<?x?xf32>, %s: tensor<1x1xf32>) -> !d {
  %0 = fp8.quantize %x scale(%s, %s : tensor<1x1xf32>, tensor<1x1xf32>) : tensor<?x?xf32> -> <?x?xf4E2M1FN, block = [*, *], scale = f32>
  return %0 : !d
}

// CHECK-LABEL: func.func @stay
// CHECK-NOT:   cf.assert
// CHECK:       return
func.func @stay(%x: tensor<?x?xf32>, %s: tensor<1x1xf32>) -> tensor<?x?xf32> {
  %0 = fp8.quantize %x scale(%s, %s : tensor<1x1xf32>, tensor<1x1xf32>) : tensor<?x?xf32> -> <?x?xf4E2M1FN, block = [*, *], scale = f32>
  %1 = fp8.dequantize %0 : <?x?xf4E2M1FN, block = [*, *], scale = f32> -> tensor<?x?xf32>
  return %1 : tensor<?x?xf32>
}

// Codes that leave with rows of another dimension are those that are put
// together for it: a known number, here.

// CHECK-LABEL: func.func @leave_turned
// CHECK-NOT:   cf.assert
// CHECK:       return
func.func @leave_turned(%x: tensor<16x?xf32>, %s: tensor<1x1xf32>) -> tensor<?x16xf4E2M1FN> {
  %0 = fp8.quantize %x scale(%s, %s : tensor<1x1xf32>, tensor<1x1xf32>) : tensor<16x?xf32> -> <16x?xf4E2M1FN, block = [*, *], scale = f32>
  %1 = fp8.transpose %0 permutation = [1, 0] : <16x?xf4E2M1FN, block = [*, *], scale = f32>
  %2, %3 = fp8.disassemble %1 : <?x16xf4E2M1FN, block = [*, *], scale = f32>
  return %2 : tensor<?x16xf4E2M1FN>
}

// CHECK-LABEL: func.func @leave_moved
// CHECK:       cf.assert
func.func @leave_moved(%x: tensor<3x16x?xf32>, %s: tensor<1x1x1xf32>) -> tensor<16x3x?xf4E2M1FN> {
  %0 = fp8.quantize %x scale(%s, %s : tensor<1x1x1xf32>, tensor<1x1x1xf32>) : tensor<3x16x?xf32> -> <3x16x?xf4E2M1FN, block = [*, *, *], scale = f32>
  %1 = fp8.transpose %0 permutation = [1, 0, 2] : <3x16x?xf4E2M1FN, block = [*, *, *], scale = f32>
  %2, %3 = fp8.disassemble %1 : <16x3x?xf4E2M1FN, block = [*, *, *], scale = f32>
  return %2 : tensor<16x3x?xf4E2M1FN>
}

// A contraction reads the codes of a transpose where they are.

// CHECK-LABEL: func.func @transposed
// CHECK-SAME:  (%[[A:.*]]: tensor<16x8xi8>, %{{.*}}, %{{.*}}, %[[B:.*]]: tensor<16x16xi8>
// CHECK-NOT:   linalg.transpose
// CHECK:       linalg.generic {{.*}} outs(%{{.*}} : tensor<16x1x8x2xf32>)
// CHECK:       linalg.generic {{.*}} outs(%{{.*}} : tensor<1x16x16x2xf32>)
// CHECK-NOT:   linalg.transpose
// CHECK:       linalg.contract
!a = !fp8.scaled<16x16xf4E2M1FN, block = [1, 16], scale = f8E4M3FN, tensor_scale = f32>
!b = !fp8.scaled<16x32xf4E2M1FN, block = [16, 1], scale = f8E4M3FN, tensor_scale = f32>
!t = !fp8.scaled<32x16xf4E2M1FN, block = [1, 16], scale = f8E4M3FN, tensor_scale = f32>
func.func @transposed(%a: !a, %b: !b) -> tensor<16x32xf32> {
  %t = fp8.transpose %b permutation = [1, 0] : <16x32xf4E2M1FN, block = [16, 1], scale = f8E4M3FN, tensor_scale = f32>
  %0 = fp8.matmul %a, %t : !a, !t -> tensor<16x32xf32>
  return %0 : tensor<16x32xf32>
}
