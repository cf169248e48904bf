// RUN: fp8-opt %s --fp8-raise-scaling-casts --split-input-file | FileCheck %s

#a = affine_map<(m, n, k, b) -> (m, k, b)>
#b = affine_map<(m, n, k, b) -> (n, k, b)>
#sa = affine_map<(m, n, k, b) -> (m, k)>
#sb = affine_map<(m, n, k, b) -> (n, k, 0)>
#c = affine_map<(m, n, k, b) -> (m, n)>

// Codes and factors of a contraction are scaled values, whether factors have a
// dimension for the block or not.
// CHECK-LABEL: func.func @contraction
// CHECK: %[[XS:.*]] = tensor.expand_shape %arg2 {{\[}}[0], [1, 2]] {{.*}} : tensor<16x2xf8E8M0FNU> into tensor<16x2x1xf8E8M0FNU>
// CHECK: %[[QX:.*]] = fp8.assemble %arg0, %[[XS]] : {{.*}} -> <16x2x32xf8E4M3FN, block = [1, 1, 32], scale = f8E8M0FNU>
// CHECK: %[[X:.*]] = fp8.dequantize %[[QX]] : {{.*}} -> tensor<16x2x32xf32>
// CHECK: %[[QW:.*]] = fp8.assemble %arg1, %{{.*}} : {{.*}} -> <16x2x32xf4E2M1FN, block = [1, 1, 32], scale = f8E8M0FNU>
// CHECK: %[[W:.*]] = fp8.dequantize %[[QW]] : {{.*}} -> tensor<16x2x32xf32>
// CHECK: linalg.generic {{.*}} ins(%[[X]], %[[W]] : tensor<16x2x32xf32>, tensor<16x2x32xf32>)
// CHECK-NEXT: ^bb0(%[[P:.*]]: f32, %[[Q:.*]]: f32, %[[O:.*]]: f32)
// CHECK-NEXT: %[[PRODUCT:.*]] = arith.mulf %[[P]], %[[Q]]
// CHECK-NEXT: arith.addf %[[O]], %[[PRODUCT]]
func.func @contraction(%x: tensor<16x2x32xf8E4M3FN>, %w: tensor<16x2x32xf4E2M1FN>, %xs: tensor<16x2xf8E8M0FNU>, %ws: tensor<16x2x1xf8E8M0FNU>, %y: tensor<16x16xf32>) -> tensor<16x16xf32> {
  %0 = linalg.generic {indexing_maps = [#a, #b, #sa, #sb, #c], iterator_types = ["parallel", "parallel", "reduction", "reduction"]}
    ins(%x, %w, %xs, %ws : tensor<16x2x32xf8E4M3FN>, tensor<16x2x32xf4E2M1FN>, tensor<16x2xf8E8M0FNU>, tensor<16x2x1xf8E8M0FNU>) outs(%y : tensor<16x16xf32>) {
  ^bb0(%p: f8E4M3FN, %q: f4E2M1FN, %ps: f8E8M0FNU, %qs: f8E8M0FNU, %o: f32):
    %1 = arith.scaling_extf %p, %ps : f8E4M3FN, f8E8M0FNU to f32
    %2 = arith.scaling_extf %q, %qs : f4E2M1FN, f8E8M0FNU to f32
    %3 = arith.mulf %1, %2 : f32
    %4 = arith.addf %o, %3 : f32
    linalg.yield %4 : f32
  } -> tensor<16x16xf32>
  return %0 : tensor<16x16xf32>
}

// -----

// Factors in another order of dimensions are those of no scaled value; in f16
// the smaller ones would be zero.
// CHECK-LABEL: func.func @expanded
// CHECK-NOT: fp8.assemble
// CHECK: %[[X:.*]] = arith.extf %{{.*}} : f8E4M3FN to f32
// CHECK: %[[S:.*]] = arith.extf %{{.*}} : f8E8M0FNU to f32
// CHECK: %[[Y:.*]] = arith.mulf %[[X]], %[[S]] : f32
// CHECK: arith.truncf %[[Y]] : f32 to f16
func.func @expanded(%x: tensor<4x2xf8E4M3FN>, %s: tensor<2x4xf8E8M0FNU>, %y: tensor<4x2xf16>) -> tensor<4x2xf16> {
  %0 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j, i)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
    ins(%x, %s : tensor<4x2xf8E4M3FN>, tensor<2x4xf8E8M0FNU>) outs(%y : tensor<4x2xf16>) {
  ^bb0(%p: f8E4M3FN, %q: f8E8M0FNU, %o: f16):
    %1 = arith.scaling_extf %p, %q : f8E4M3FN, f8E8M0FNU to f16
    linalg.yield %1 : f16
  } -> tensor<4x2xf16>
  return %0 : tensor<4x2xf16>
}

// -----

// The exponent field of a wider factor counts.
// CHECK-LABEL: func.func @exponent
// CHECK: %[[BITS:.*]] = arith.bitcast %arg1 : f32 to i32
// CHECK: %[[SHIFTED:.*]] = arith.shrui %[[BITS]]
// CHECK: %[[BYTE:.*]] = arith.trunci %[[SHIFTED]] : i32 to i8
// CHECK: %[[CODE:.*]] = arith.bitcast %[[BYTE]] : i8 to f8E8M0FNU
// CHECK: %[[FACTOR:.*]] = arith.extf %[[CODE]] : f8E8M0FNU to f32
// CHECK: %[[QUOTIENT:.*]] = arith.divf %arg0, %[[FACTOR]]
// CHECK: arith.truncf %[[QUOTIENT]] : f32 to f8E5M2
func.func @exponent(%x: f32, %s: f32) -> f8E5M2 {
  %0 = arith.scaling_truncf %x, %s : f32, f32 to f8E5M2
  return %0 : f8E5M2
}

// -----

// Codes of 4 bits are scaled values, with a factor of 1 where there is none.
// CHECK-LABEL: func.func @four_bits
// CHECK: %[[Q:.*]] = fp8.assemble %arg0, %{{.*}} -> <4x?xf4E2M1FN, block = [*, *], scale = f32>
// CHECK: %[[X:.*]] = fp8.dequantize %[[Q]]
// CHECK: %[[Y:.*]] = linalg.generic {{.*}} ins(%[[X]] : tensor<4x?xf32>) outs(%{{.*}} : tensor<4x?xf32>)
// CHECK: %[[CODES:.*]] = fp8.quantize %[[Y]] scale
// CHECK: %[[PAYLOAD:.*]], %{{.*}} = fp8.disassemble %[[CODES]]
// CHECK: return %[[PAYLOAD]] : tensor<4x?xf4E2M1FN>
func.func @four_bits(%x: tensor<4x?xf4E2M1FN>, %o: tensor<4x?xf4E2M1FN>) -> tensor<4x?xf4E2M1FN> {
  %0 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
    ins(%x : tensor<4x?xf4E2M1FN>) outs(%o : tensor<4x?xf4E2M1FN>) {
  ^bb0(%p: f4E2M1FN, %r: f4E2M1FN):
    %1 = arith.extf %p : f4E2M1FN to f32
    %2 = arith.addf %1, %1 : f32
    %3 = arith.truncf %2 : f32 to f4E2M1FN
    linalg.yield %3 : f4E2M1FN
  } -> tensor<4x?xf4E2M1FN>
  return %0 : tensor<4x?xf4E2M1FN>
}
