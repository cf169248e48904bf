// RUN: fp8-opt %s --fp8-apply-recipe=recipe=rowwise | FileCheck %s

// However it is spelled, what is quantized is [batch x] M x K and N x K.

// CHECK-LABEL: func.func @both_transposed
// CHECK-DAG: linalg.transpose ins(%arg0 : tensor<64x32xf16>)
// CHECK: fp8.quantize {{.*}} -> <32x64xf8E4M3FN
// CHECK: fp8.quantize %arg1 {{.*}} -> <16x64xf8E4M3FN
func.func @both_transposed(%a: tensor<64x32xf16>, %b: tensor<16x64xf16>, %c: tensor<32x16xf32>) -> tensor<32x16xf32> {
  %0 = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>]
      ins(%a, %b : tensor<64x32xf16>, tensor<16x64xf16>) outs(%c : tensor<32x16xf32>) -> tensor<32x16xf32>
  return %0 : tensor<32x16xf32>
}

// The way back permutes the result.
// CHECK-LABEL: func.func @result_transposed
// CHECK: linalg.contract {{.*}} -> tensor<32x16xf32>
// CHECK: %[[R:.*]] = linalg.transpose {{.*}} outs(%{{.*}} : tensor<16x32xf32>)
// CHECK: return %[[R]]
func.func @result_transposed(%a: tensor<32x64xf32>, %b: tensor<16x64xf32>, %c: tensor<16x32xf32>) -> tensor<16x32xf32> {
  %0 = linalg.contract indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (n, m)>]
      ins(%a, %b : tensor<32x64xf32>, tensor<16x64xf32>) outs(%c : tensor<16x32xf32>) -> tensor<16x32xf32>
  return %0 : tensor<16x32xf32>
}

// CHECK-LABEL: func.func @batch_transposed
// CHECK: fp8.quantize {{.*}} -> <4x?x64xf8E4M3FN, block = [1, 1, *]
// CHECK: fp8.quantize {{.*}} -> <4x16x64xf8E4M3FN, block = [1, 1, *]
func.func @batch_transposed(%a: tensor<4x64x?xf32>, %b: tensor<4x64x16xf32>, %c: tensor<4x?x16xf32>) -> tensor<4x?x16xf32> {
  %0 = linalg.batch_matmul indexing_maps = [affine_map<(b, m, n, k) -> (b, k, m)>, affine_map<(b, m, n, k) -> (b, k, n)>, affine_map<(b, m, n, k) -> (b, m, n)>]
      ins(%a, %b : tensor<4x64x?xf32>, tensor<4x64x16xf32>) outs(%c : tensor<4x?x16xf32>) -> tensor<4x?x16xf32>
  return %0 : tensor<4x?x16xf32>
}

// A linear layer on sequences: two loops of M.
// CHECK-LABEL: func.func @several_m
// CHECK: tensor.collapse_shape %arg0 {{\[}}[0, 1], [2]]
// CHECK: fp8.quantize {{.*}} -> <?x64xf8E4M3FN, block = [1, *]
// CHECK: tensor.expand_shape %{{.*}} {{\[}}[0, 1], [2]] output_shape [%{{.*}}, 8, 16]
func.func @several_m(%a: tensor<?x8x64xbf16>, %b: tensor<16x64xbf16>, %c: tensor<?x8x16xf32>) -> tensor<?x8x16xf32> {
  %0 = linalg.contract indexing_maps = [affine_map<(p, q, n, k) -> (p, q, k)>, affine_map<(p, q, n, k) -> (n, k)>, affine_map<(p, q, n, k) -> (p, q, n)>]
      ins(%a, %b : tensor<?x8x64xbf16>, tensor<16x64xbf16>) outs(%c : tensor<?x8x16xf32>) -> tensor<?x8x16xf32>
  return %0 : tensor<?x8x16xf32>
}

// Heads: two batch loops, of which the second is inside in A and C.
// CHECK-LABEL: func.func @heads
// CHECK: fp8.quantize {{.*}} -> <6x10x64xf8E4M3FN, block = [1, 1, *]
// CHECK: fp8.quantize {{.*}} -> <6x12x64xf8E4M3FN, block = [1, 1, *]
// CHECK: tensor.expand_shape %{{.*}} output_shape [2, 3, 10, 12]
// CHECK: linalg.transpose {{.*}} permutation = [0, 2, 1, 3]
func.func @heads(%a: tensor<2x10x3x64xbf16>, %b: tensor<2x3x12x64xbf16>, %c: tensor<2x10x3x12xf32>) -> tensor<2x10x3x12xf32> {
  %0 = linalg.contract indexing_maps = [affine_map<(b, h, m, n, k) -> (b, m, h, k)>, affine_map<(b, h, m, n, k) -> (b, h, n, k)>, affine_map<(b, h, m, n, k) -> (b, m, h, n)>]
      ins(%a, %b : tensor<2x10x3x64xbf16>, tensor<2x3x12x64xbf16>) outs(%c : tensor<2x10x3x12xf32>) -> tensor<2x10x3x12xf32>
  return %0 : tensor<2x10x3x12xf32>
}

// Dimensions that are missing have size 1.
// CHECK-LABEL: func.func @vectors
func.func @vectors(%x: tensor<64xf32>, %m: tensor<4x64xf32>, %t: tensor<64x4xf32>, %y: tensor<4xf32>, %s: tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<f32>) {
  // CHECK: fp8.quantize {{.*}} -> <4x64xf8E4M3FN
  // CHECK: fp8.quantize {{.*}} -> <1x64xf8E4M3FN
  // CHECK: tensor.collapse_shape %{{.*}} {{\[}}[0, 1]] : tensor<4x1xf32> into tensor<4xf32>
  %0 = linalg.matvec ins(%m, %x : tensor<4x64xf32>, tensor<64xf32>) outs(%y : tensor<4xf32>) -> tensor<4xf32>
  // CHECK: fp8.quantize {{.*}} -> <1x64xf8E4M3FN
  // CHECK: fp8.quantize {{.*}} -> <4x64xf8E4M3FN
  // CHECK: tensor.collapse_shape %{{.*}} {{\[}}[0, 1]] : tensor<1x4xf32> into tensor<4xf32>
  %1 = linalg.vecmat ins(%x, %t : tensor<64xf32>, tensor<64x4xf32>) outs(%y : tensor<4xf32>) -> tensor<4xf32>
  // CHECK: tensor.collapse_shape %{{.*}} [] : tensor<1x1xf32> into tensor<f32>
  %2 = linalg.dot ins(%x, %x : tensor<64xf32>, tensor<64xf32>) outs(%s : tensor<f32>) -> tensor<f32>
  return %0, %1, %2 : tensor<4xf32>, tensor<4xf32>, tensor<f32>
}

// CHECK-LABEL: func.func @mmt4d
// CHECK: fp8.quantize {{.*}} -> <8x32xf8E4M3FN, block = [1, *]
// CHECK: fp8.quantize {{.*}} -> <20x32xf8E4M3FN, block = [1, *]
func.func @mmt4d(%a: tensor<2x4x4x8xf32>, %b: tensor<5x4x4x8xf32>, %c: tensor<2x5x4x4xf32>) -> tensor<2x5x4x4xf32> {
  %0 = linalg.mmt4d ins(%a, %b : tensor<2x4x4x8xf32>, tensor<5x4x4x8xf32>) outs(%c : tensor<2x5x4x4xf32>) -> tensor<2x5x4x4xf32>
  return %0 : tensor<2x5x4x4xf32>
}

// CHECK-LABEL: func.func @not_a_contraction
// CHECK-NOT: fp8.quantize
func.func @not_a_contraction(%x: tensor<16x64xf32>, %c: tensor<16x16xf32>) -> tensor<16x16xf32> {
  %0 = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>],
                       iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %x : tensor<16x64xf32>, tensor<16x64xf32>) outs(%c : tensor<16x16xf32>) {
  ^bb0(%a: f32, %b: f32, %sum: f32):
    %e = math.exp %a : f32
    %product = arith.mulf %e, %b : f32
    %next = arith.addf %sum, %product : f32
    linalg.yield %next : f32
  } -> tensor<16x16xf32>
  return %0 : tensor<16x16xf32>
}
