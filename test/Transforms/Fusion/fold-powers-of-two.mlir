// RUN: fp8-opt %s --fp8-fold-powers-of-two --canonicalize | FileCheck %s

!q = !fp8.scaled<4x64xf8E4M3FN, block = [*, *], scale = f32>
!rows = !fp8.scaled<2x64xf8E4M3FN, block = [1, *], scale = f32>
!t = tensor<4x64xbf16>
!s = tensor<1x1xf32>
#id = affine_map<(i, j) -> (i, j)>

//===----------------------------------------------------------------------===//
// Before a quantize
//===----------------------------------------------------------------------===//

// CHECK-LABEL: func.func @quantize
// CHECK-DAG: %[[S:.*]] = arith.constant dense<5.000000e-01> : tensor<1x1xf32>
// CHECK-DAG: %[[SI:.*]] = arith.constant dense<2.500000e-01> : tensor<1x1xf32>
// CHECK-NOT: mulf
// CHECK: fp8.quantize %arg0 scale(%[[S]], %[[SI]]
func.func @quantize(%x: !t) -> !q {
  %s = arith.constant dense<4.0> : !s
  %si = arith.constant dense<0.25> : !s
  %c = arith.constant dense<0.125> : !t
  %0 = arith.mulf %x, %c : !t
  %1 = fp8.quantize %0 scale(%s, %si : !s, !s) : !t -> !q
  return %1 : !q
}

// A number that the product makes 0 would not have to become 0 by a seed.
// CHECK-LABEL: func.func @quantize_with_seed
// CHECK: arith.mulf
func.func @quantize_with_seed(%x: !t, %seed: tensor<4xi32>) -> !fp8.scaled<4x64xf4E2M1FN, block = [*, *], scale = f32> {
  %s = arith.constant dense<4.0> : !s
  %si = arith.constant dense<0.25> : !s
  %c = arith.constant dense<0.125> : !t
  %0 = arith.mulf %x, %c : !t
  %1 = fp8.quantize %0 scale(%s, %si : !s, !s) seed(%seed : tensor<4xi32>) : !t -> !fp8.scaled<4x64xf4E2M1FN, block = [*, *], scale = f32>
  return %1 : !fp8.scaled<4x64xf4E2M1FN, block = [*, *], scale = f32>
}

// 1 / sqrt(64), as a program for f32 arithmetic has it.
// CHECK-LABEL: func.func @divided_in_f32
// CHECK-NOT: divf
// CHECK: fp8.quantize %arg0 scale(
func.func @divided_in_f32(%x: !t) -> !q {
  %s = arith.constant dense<4.0> : !s
  %si = arith.constant dense<0.25> : !s
  %c = arith.constant 8.0 : f32
  %e = tensor.empty() : !t
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : !t) outs(%e : !t) {
  ^bb0(%in: bf16, %out: bf16):
    %2 = arith.extf %in : bf16 to f32
    %3 = arith.divf %2, %c : f32
    %4 = arith.truncf %3 : f32 to bf16
    linalg.yield %4 : bf16
  } -> !t
  %1 = fp8.quantize %0 scale(%s, %si : !s, !s) : !t -> !q
  return %1 : !q
}

// Each factor of rows.
// CHECK-LABEL: func.func @rows
// CHECK: arith.constant dense<{{\[\[}}8.000000e+00], [1.200000e+01]]> : tensor<2x1xf32>
func.func @rows(%x: tensor<2x64xf32>) -> !rows {
  %s = arith.constant dense<[[4.0], [6.0]]> : tensor<2x1xf32>
  %c = arith.constant dense<2.0> : tensor<2x64xf32>
  %0 = arith.mulf %c, %x : tensor<2x64xf32>
  %1 = fp8.quantize %0 scale(%s, %s : tensor<2x1xf32>, tensor<2x1xf32>) : tensor<2x64xf32> -> !rows
  return %1 : !rows
}

// CHECK-LABEL: func.func @no_power
// CHECK: arith.mulf
func.func @no_power(%x: !t) -> !q {
  %s = arith.constant dense<4.0> : !s
  %c = arith.constant dense<0.1875> : !t
  %0 = arith.mulf %x, %c : !t
  %1 = fp8.quantize %0 scale(%s, %s : !s, !s) : !t -> !q
  return %1 : !q
}

// CHECK-LABEL: func.func @negative
// CHECK: arith.mulf
func.func @negative(%x: !t) -> !q {
  %s = arith.constant dense<4.0> : !s
  %c = arith.constant dense<-0.5> : !t
  %0 = arith.mulf %x, %c : !t
  %1 = fp8.quantize %0 scale(%s, %s : !s, !s) : !t -> !q
  return %1 : !q
}

// It follows from what comes at run time.
// CHECK-LABEL: func.func @scale_not_known
// CHECK: arith.mulf
func.func @scale_not_known(%x: !t, %s: !s, %si: !s) -> !q {
  %c = arith.constant dense<0.125> : !t
  %0 = arith.mulf %x, %c : !t
  %1 = fp8.quantize %0 scale(%s, %si : !s, !s) : !t -> !q
  return %1 : !q
}

// 2^-126, the smallest normal number, has a code of its own: 2^-127 is rounded.
// CHECK-LABEL: func.func @subnormal
// CHECK: arith.mulf
func.func @subnormal(%x: !t) -> !q {
  // 2^120: 2^-126 becomes 2^-6.
  %s = arith.constant dense<1.329227995784916e36> : !s
  %c = arith.constant dense<0.5> : !t
  %0 = arith.mulf %x, %c : !t
  %1 = fp8.quantize %0 scale(%s, %s : !s, !s) : !t -> !q
  return %1 : !q
}

// 65504, the largest number of f16, is 255.9, less than 448.
// CHECK-LABEL: func.func @overflow
// CHECK: arith.mulf
func.func @overflow(%x: tensor<4x64xf16>) -> !q {
  %s = arith.constant dense<0.00390625> : !s
  %c = arith.constant dense<2.0> : tensor<4x64xf16>
  %0 = arith.mulf %x, %c : tensor<4x64xf16>
  %1 = fp8.quantize %0 scale(%s, %s : !s, !s) : tensor<4x64xf16> -> !q
  return %1 : !q
}

// The new scale has none.
// CHECK-LABEL: func.func @scale_overflows
// CHECK: arith.mulf
func.func @scale_overflows(%x: !t) -> !q {
  %s = arith.constant dense<1.0e38> : !s
  %c = arith.constant dense<16.0> : !t
  %0 = arith.mulf %x, %c : !t
  %1 = fp8.quantize %0 scale(%s, %s : !s, !s) : !t -> !q
  return %1 : !q
}

//===----------------------------------------------------------------------===//
// After a dequantize
//===----------------------------------------------------------------------===//

// CHECK-LABEL: func.func @dequantize
// CHECK: %[[S:.*]] = arith.constant dense<5.000000e-01> : tensor<1x1xf32>
// CHECK: %[[Q:.*]] = fp8.assemble %arg0, %[[S]]
// CHECK: %[[D:.*]] = fp8.dequantize %[[Q]]
// CHECK: return %[[D]]
func.func @dequantize(%p: tensor<4x64xf8E4M3FN>) -> !t {
  %si = arith.constant dense<0.25> : !s
  %c = arith.constant dense<2.0> : !t
  %q = fp8.assemble %p, %si : tensor<4x64xf8E4M3FN>, !s -> !q
  %0 = fp8.dequantize %q : !q -> !t
  %1 = arith.mulf %0, %c : !t
  return %1 : !t
}

// CHECK-LABEL: func.func @chain
// CHECK: arith.constant dense<2.000000e+00> : tensor<1x1xf32>
// CHECK-NOT: mulf
func.func @chain(%p: tensor<4x64xf8E4M3FN>) -> !t {
  %si = arith.constant dense<0.25> : !s
  %c = arith.constant dense<2.0> : !t
  %d = arith.constant dense<0.25> : !t
  %q = fp8.assemble %p, %si : tensor<4x64xf8E4M3FN>, !s -> !q
  %0 = fp8.dequantize %q : !q -> !t
  %1 = arith.mulf %0, %c : !t
  %2 = arith.divf %1, %d : !t
  return %2 : !t
}

// The smallest code, 2^-9, of f16's 2^-14.
// CHECK-LABEL: func.func @dequantize_to_subnormal
// CHECK: arith.mulf
func.func @dequantize_to_subnormal(%p: tensor<4x64xf8E4M3FN>) -> tensor<4x64xf16> {
  %si = arith.constant dense<0.03125> : !s
  %c = arith.constant dense<0.5> : tensor<4x64xf16>
  %q = fp8.assemble %p, %si : tensor<4x64xf8E4M3FN>, !s -> !q
  %0 = fp8.dequantize %q : !q -> tensor<4x64xf16>
  %1 = arith.mulf %0, %c : tensor<4x64xf16>
  return %1 : tensor<4x64xf16>
}

// CHECK-LABEL: func.func @dequantize_to_infinity
// CHECK: arith.mulf
func.func @dequantize_to_infinity(%p: tensor<4x64xf8E4M3FN>) -> tensor<4x64xf16> {
  %si = arith.constant dense<128.0> : !s
  %c = arith.constant dense<2.0> : tensor<4x64xf16>
  %q = fp8.assemble %p, %si : tensor<4x64xf8E4M3FN>, !s -> !q
  %0 = fp8.dequantize %q : !q -> tensor<4x64xf16>
  %1 = arith.mulf %0, %c : tensor<4x64xf16>
  return %1 : tensor<4x64xf16>
}

// CHECK-LABEL: func.func @factors_not_known
// CHECK: arith.mulf
func.func @factors_not_known(%q: !q) -> !t {
  %c = arith.constant dense<2.0> : !t
  %0 = fp8.dequantize %q : !q -> !t
  %1 = arith.mulf %0, %c : !t
  return %1 : !t
}
