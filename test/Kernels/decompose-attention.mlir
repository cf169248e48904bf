// RUN: fp8-opt %s --fp8-decompose-attention --split-input-file | FileCheck %s
// RUN: fp8-opt %s --fp8-decompose-attention=chip=sm_90a --split-input-file 2> %t.remarks | FileCheck %s --check-prefix=SM90
// RUN: FileCheck %s --check-prefix=REMARK < %t.remarks
// RUN: fp8-opt %s --fp8-decompose-attention=chip=sm_89 --split-input-file | FileCheck %s --check-prefix=SM90

// A batch for each head of each batch; heads of K and V come once for each head of Q that reads them. The window's keys
// are told by their numbers.

// CHECK: #[[READ:.*]] = affine_map<(d0, d1, d2, d3) -> (d0, d2, d1 floordiv 2, d3)>
// CHECK-LABEL: @causal
// CHECK: %[[Q:.*]] = tensor.collapse_shape {{.*}} tensor<2x4x16x64xbf16> into tensor<8x16x64xbf16>
// CHECK: linalg.generic {indexing_maps = [#[[READ]],
// CHECK: %[[K:.*]] = tensor.collapse_shape {{.*}} tensor<2x4x24x64xbf16> into tensor<8x24x64xbf16>
// CHECK: fp8.matmul %[[Q]], %[[K]] accumulate = fast {{.*}} -> tensor<8x16x24xf32>
// CHECK: linalg.index 2
// CHECK: linalg.reduce {{.*}} dimensions = [2]
// CHECK: math.exp
// CHECK: fp8.matmul {{.*}} transpose_b accumulate = fast {{.*}} -> tensor<8x16x64xf32>
// CHECK: math.log
// SM90-LABEL: @causal
// SM90: fp8.attention
func.func @causal(%q: tensor<2x16x4x64xbf16>, %k: tensor<2x24x2x64xbf16>, %v: tensor<2x24x2x64xbf16>) -> (tensor<2x16x4x64xbf16>, tensor<2x4x16xf32>) {
  %0, %1 = fp8.attention %q, %k, %v scale = 0.125 window = [*, 0]
      : tensor<2x16x4x64xbf16>, tensor<2x24x2x64xbf16>, tensor<2x24x2x64xbf16> -> tensor<2x16x4x64xbf16>, tensor<2x4x16xf32>
  return %0, %1 : tensor<2x16x4x64xbf16>, tensor<2x4x16xf32>
}

// -----

// Factors are of each batch now; P has codes, and one factor.

!s = !fp8.scaled<2x4x16x64xf8E4M3FN, block = [1, 1, *, *], scale = f32>
// CHECK-LABEL: @scaled
// CHECK: fp8.matmul {{.*}} : !fp8.scaled<8x16x64xf8E4M3FN, block = [1, *, *], scale = f32>, {{.*}} -> tensor<8x16x16xf32>
// CHECK: fp8.transpose
// CHECK: fp8.matmul
// CHECK-NOT: accumulate = fast
// CHECK-SAME: : !fp8.scaled<8x16x16xf8E4M3FN, block = [*, *, *], scale = f32>
func.func @scaled(%q: !s) -> tensor<2x4x16x64xbf16> {
  %0 = fp8.attention %q, %q, %q scale = 0.125 layout = bhsd : !s, !s, !s -> tensor<2x4x16x64xbf16>
  return %0 : tensor<2x4x16x64xbf16>
}

// -----

// Keys and values beyond a batch's own do not matter, whatever they are: P is 0 there, and 0 times NaN would be NaN.

// CHECK-LABEL: @key_lengths
// CHECK-SAME: %[[LENGTHS:[a-z0-9]*]]: tensor<2xi32>
// CHECK: %[[SCORES:.*]] = fp8.matmul
// CHECK: linalg.generic {{.*}} ins(%[[SCORES]]
// CHECK: tensor.extract %[[LENGTHS]]
// CHECK: linalg.generic {{.*}} ins(%{{.*}} : tensor<8x16x64xbf16>)
// CHECK: tensor.extract %[[LENGTHS]]
// CHECK: arith.select %{{.*}}, %{{.*}}, %{{.*}} : bf16
// CHECK: fp8.matmul
func.func @key_lengths(%q: tensor<2x16x4x64xbf16>, %lengths: tensor<2xi32>) -> tensor<2x16x4x64xbf16> {
  %0 = fp8.attention %q, %q, %q key_lengths(%lengths : tensor<2xi32>) scale = 0.125
      : tensor<2x16x4x64xbf16>, tensor<2x16x4x64xbf16>, tensor<2x16x4x64xbf16> -> tensor<2x16x4x64xbf16>
  return %0 : tensor<2x16x4x64xbf16>
}

// -----

// Pages are put one after the other; a number beyond them is that of the last.

// CHECK-LABEL: @pages
// CHECK-SAME: %[[K:[a-z0-9]*]]: tensor<?x16x2x64xbf16>, %[[TABLE:[a-z0-9]*]]: tensor<2x3xi32>
// CHECK: linalg.generic {{.*}} outs(%{{.*}} : tensor<2x48x2x64xbf16>)
// CHECK: tensor.extract %[[TABLE]]
// CHECK: arith.minsi
// CHECK: tensor.extract %[[K]]
// CHECK: fp8.matmul {{.*}} -> tensor<8x1x48xf32>
func.func @pages(%q: tensor<2x1x4x64xbf16>, %k: tensor<?x16x2x64xbf16>, %table: tensor<2x3xi32>) -> tensor<2x1x4x64xbf16> {
  %0 = fp8.attention %q, %k, %k page_table(%table : tensor<2x3xi32>) scale = 0.125
      : tensor<2x1x4x64xbf16>, tensor<?x16x2x64xbf16>, tensor<?x16x2x64xbf16> -> tensor<2x1x4x64xbf16>
  return %0 : tensor<2x1x4x64xbf16>
}

// -----

// Nor do those before a batch's first; queries with ranges see their keys only. A head's own score joins the maximum and
// the sum.

// CHECK-LABEL: @starts
// CHECK-SAME: %[[STARTS:[a-z0-9]*]]: tensor<2xi32>, %[[RANGES:[a-z0-9]*]]: tensor<2x16x2xi32>, %[[SINKS:[a-z0-9]*]]: tensor<4xf32>
// CHECK: %[[SCORES:.*]] = fp8.matmul
// CHECK: linalg.generic {{.*}} ins(%[[SCORES]]
// CHECK: tensor.extract %[[STARTS]]
// CHECK: tensor.extract %[[RANGES]]
// CHECK: tensor.extract %[[RANGES]]
// CHECK: linalg.reduce {{.*}} dimensions = [2]
// CHECK: tensor.extract %[[SINKS]]
// CHECK: arith.maximumf
// CHECK: linalg.reduce {{.*}} dimensions = [2]
// CHECK: tensor.extract %[[SINKS]]
// CHECK: linalg.generic {{.*}} ins(%{{.*}} : tensor<8x16x64xbf16>)
// CHECK: tensor.extract %[[STARTS]]
// CHECK: arith.select %{{.*}}, %{{.*}}, %{{.*}} : bf16
// CHECK: fp8.matmul
// SM90-LABEL: @starts
// SM90: fp8.attention
func.func @starts(%q: tensor<2x16x4x64xbf16>, %starts: tensor<2xi32>, %ranges: tensor<2x16x2xi32>, %sinks: tensor<4xf32>) -> tensor<2x16x4x64xbf16> {
  %0 = fp8.attention %q, %q, %q key_starts(%starts : tensor<2xi32>) key_ranges(%ranges : tensor<2x16x2xi32>)
      sinks(%sinks : tensor<4xf32>) scale = 0.125
      : tensor<2x16x4x64xbf16>, tensor<2x16x4x64xbf16>, tensor<2x16x4x64xbf16> -> tensor<2x16x4x64xbf16>
  return %0 : tensor<2x16x4x64xbf16>
}

// -----

// A cap comes before a mask; the kernel has both.

// CHECK-LABEL: @capped
// CHECK: %[[SCORES:.*]] = fp8.matmul
// CHECK: linalg.generic {{.*}} ins(%[[SCORES]]
// CHECK: arith.mulf
// CHECK: %[[PART:.*]] = arith.divf %{{.*}}, %[[CAP:.*]] : f32
// CHECK: %[[BENT:.*]] = math.tanh %[[PART]]
// CHECK: %[[SCORE:.*]] = arith.mulf %[[BENT]], %[[CAP]]
// CHECK: arith.addf %[[SCORE]]
// SM90-LABEL: @capped
// SM90: fp8.attention
func.func @capped(%q: tensor<1x16x4x64xbf16>, %mask: tensor<16x16xf32>) -> tensor<1x16x4x64xbf16> {
  %0 = fp8.attention %q, %q, %q mask(%mask : tensor<16x16xf32>) scale = 0.125 cap = 30.0
      : tensor<1x16x4x64xbf16>, tensor<1x16x4x64xbf16>, tensor<1x16x4x64xbf16> -> tensor<1x16x4x64xbf16>
  return %0 : tensor<1x16x4x64xbf16>
}

// -----

// REMARK: remark: no kernel: expected a cap of at most 16384.00, but got 16385.00; computed as two products and a softmax
// SM90-LABEL: @wide_cap
// SM90-NOT: fp8.attention
func.func @wide_cap(%q: tensor<1x16x4x64xbf16>) -> tensor<1x16x4x64xbf16> {
  %0 = fp8.attention %q, %q, %q scale = 0.125 cap = 16385.0
      : tensor<1x16x4x64xbf16>, tensor<1x16x4x64xbf16>, tensor<1x16x4x64xbf16> -> tensor<1x16x4x64xbf16>
  return %0 : tensor<1x16x4x64xbf16>
}

// -----

// REMARK: remark: no kernel: expected queries of 8 or 16 bits, but got f32; computed as two products and a softmax
// SM90-LABEL: @wide
// SM90-NOT: fp8.attention
func.func @wide(%q: tensor<1x16x4x64xf32>, %mask: tensor<16x16xf32>) -> tensor<1x16x4x64xf32> {
  %0 = fp8.attention %q, %q, %q mask(%mask : tensor<16x16xf32>) scale = 0.125
      : tensor<1x16x4x64xf32>, tensor<1x16x4x64xf32>, tensor<1x16x4x64xf32> -> tensor<1x16x4x64xf32>
  return %0 : tensor<1x16x4x64xf32>
}

// -----

// Gradients: of what a score bends, and of keys in ranges. On sm_89 they have no kernel.

!q = tensor<1x16x4x64xbf16>
!r = tensor<1x4x16xf32>
!n = tensor<1x16x2xi32>
// CHECK-LABEL: @gradients
// CHECK-SAME: %[[RANGES:[a-z0-9]*]]: tensor<1x16x2xi32>
// CHECK: math.tanh
// CHECK: math.exp
// CHECK: tensor.extract %[[RANGES]]
// CHECK: tensor.extract %[[RANGES]]
// CHECK: %[[BENT:.*]] = math.tanh
// CHECK: %[[SQUARE:.*]] = arith.mulf %[[BENT]], %[[BENT]]
// CHECK: arith.subf %{{.*}}, %[[SQUARE]]
// SM90-LABEL: @gradients
// SM90: fp8.attention_backward
func.func @gradients(%q: !q, %r: !r, %ranges: !n) -> (!q, !q, !q) {
  %0:3 = fp8.attention_backward %q, %q, %q, %q, %r, %r key_ranges(%ranges : !n) scale = 0.125 cap = 30.0
      : !q, !q, !q, !q, !r, !r -> !q, !q, !q
  return %0#0, %0#1, %0#2 : !q, !q, !q
}
