// RUN: fp8-opt %s --canonicalize | FileCheck %s

!q = !fp8.scaled<4x16xf8E4M3FN, block = [1, *], scale = f32>
!qt = !fp8.scaled<16x4xf8E4M3FN, block = [*, 1], scale = f32>

// CHECK-LABEL: @quantize_of_dequantize_same_scale
// CHECK-SAME: %[[X:[^:]*]]: tensor<4x16xf32>, %[[S:[^:]*]]: tensor<4x1xf32>, %[[SI:[^:]*]]: tensor<4x1xf32>
func.func @quantize_of_dequantize_same_scale(%x: tensor<4x16xf32>, %s: tensor<4x1xf32>, %si: tensor<4x1xf32>) -> !q {
  // CHECK: %[[Q:.*]] = fp8.quantize %[[X]] scale(%[[S]], %[[SI]]
  // CHECK-NEXT: return %[[Q]]
  %0 = fp8.quantize %x scale(%s, %si : tensor<4x1xf32>, tensor<4x1xf32>) : tensor<4x16xf32> -> !q
  %1 = fp8.dequantize %0 : !q -> tensor<4x16xbf16>
  %2 = fp8.quantize %1 scale(%s, %si : tensor<4x1xf32>, tensor<4x1xf32>) : tensor<4x16xbf16> -> !q
  return %2 : !q
}

// CHECK-LABEL: @quantize_of_dequantize_other_scale
func.func @quantize_of_dequantize_other_scale(%x: tensor<4x16xf32>, %s: tensor<4x1xf32>, %t: tensor<4x1xf32>) -> !q {
  // CHECK-COUNT-2: fp8.quantize
  %0 = fp8.quantize %x scale(%s, %s : tensor<4x1xf32>, tensor<4x1xf32>) : tensor<4x16xf32> -> !q
  %1 = fp8.dequantize %0 : !q -> tensor<4x16xf32>
  %2 = fp8.quantize %1 scale(%t, %t : tensor<4x1xf32>, tensor<4x1xf32>) : tensor<4x16xf32> -> !q
  return %2 : !q
}

// f16 may overflow on the way.
// What is a bit off a code may be rounded to another one.
// CHECK-LABEL: @quantize_of_dequantize_seed
func.func @quantize_of_dequantize_seed(%x: tensor<4x16xf32>, %s: tensor<1x1xf32>, %si: tensor<1x1xf32>, %seed: tensor<4xi32>)
    -> !fp8.scaled<4x16xf4E2M1FN, block = [*, *], scale = f32> {
  // CHECK-COUNT-2: fp8.quantize
  %0 = fp8.quantize %x scale(%s, %si : tensor<1x1xf32>, tensor<1x1xf32>) : tensor<4x16xf32> -> !fp8.scaled<4x16xf4E2M1FN, block = [*, *], scale = f32>
  %1 = fp8.dequantize %0 : !fp8.scaled<4x16xf4E2M1FN, block = [*, *], scale = f32> -> tensor<4x16xf32>
  %2 = fp8.quantize %1 scale(%s, %si : tensor<1x1xf32>, tensor<1x1xf32>) seed(%seed : tensor<4xi32>) : tensor<4x16xf32> -> !fp8.scaled<4x16xf4E2M1FN, block = [*, *], scale = f32>
  return %2 : !fp8.scaled<4x16xf4E2M1FN, block = [*, *], scale = f32>
}

// CHECK-LABEL: @quantize_of_dequantize_f16
func.func @quantize_of_dequantize_f16(%x: tensor<4x16xf32>, %s: tensor<4x1xf32>) -> !q {
  // CHECK-COUNT-2: fp8.quantize
  %0 = fp8.quantize %x scale(%s, %s : tensor<4x1xf32>, tensor<4x1xf32>) : tensor<4x16xf32> -> !q
  %1 = fp8.dequantize %0 : !q -> tensor<4x16xf16>
  %2 = fp8.quantize %1 scale(%s, %s : tensor<4x1xf32>, tensor<4x1xf32>) : tensor<4x16xf16> -> !q
  return %2 : !q
}

// CHECK-LABEL: @transpose_identity
// CHECK-SAME: %[[Q:[^:]*]]:
func.func @transpose_identity(%q: !q) -> !q {
  // CHECK-NEXT: return %[[Q]]
  %0 = fp8.transpose %q permutation = [0, 1] : !q
  return %0 : !q
}

// CHECK-LABEL: @transpose_of_transpose
// CHECK-SAME: %[[Q:[^:]*]]:
func.func @transpose_of_transpose(%q: !q) -> !q {
  // CHECK-NEXT: return %[[Q]]
  %0 = fp8.transpose %q permutation = [1, 0] : !q
  %1 = fp8.transpose %0 permutation = [1, 0] : !qt
  return %1 : !q
}

// Dimension i of the result is dimension p[i] of the source: two cyclic shifts
// to the left are one to the right.
// CHECK-LABEL: @transpose_composed
func.func @transpose_composed(%q: !fp8.scaled<2x3x4xf8E4M3FN, block = [*, *, *], scale = f32>)
    -> !fp8.scaled<4x2x3xf8E4M3FN, block = [*, *, *], scale = f32> {
  // CHECK: fp8.transpose %{{.*}} permutation = [2, 0, 1] : <2x3x4x
  // CHECK-NOT: fp8.transpose
  %0 = fp8.transpose %q permutation = [1, 2, 0] : !fp8.scaled<2x3x4xf8E4M3FN, block = [*, *, *], scale = f32>
  %1 = fp8.transpose %0 permutation = [1, 2, 0] : !fp8.scaled<3x4x2xf8E4M3FN, block = [*, *, *], scale = f32>
  return %1 : !fp8.scaled<4x2x3xf8E4M3FN, block = [*, *, *], scale = f32>
}

// CHECK-LABEL: @assemble_of_disassemble
// CHECK-SAME: %[[Q:[^:]*]]:
func.func @assemble_of_disassemble(%q: !q) -> !q {
  // CHECK-NEXT: return %[[Q]]
  %0:2 = fp8.disassemble %q : !q
  %1 = fp8.assemble %0#0, %0#1 : tensor<4x16xf8E4M3FN>, tensor<4x1xf32> -> !q
  return %1 : !q
}

// CHECK-LABEL: @disassemble_of_assemble
// CHECK-SAME: %[[P:[^:]*]]: tensor<4x16xf8E4M3FN>, %[[S:[^:]*]]: tensor<4x1xf32>
func.func @disassemble_of_assemble(%p: tensor<4x16xf8E4M3FN>, %s: tensor<4x1xf32>) -> (tensor<4x16xf8E4M3FN>, tensor<4x1xf32>) {
  // CHECK-NEXT: return %[[P]], %[[S]]
  %0 = fp8.assemble %p, %s : tensor<4x16xf8E4M3FN>, tensor<4x1xf32> -> !q
  %1:2 = fp8.disassemble %0 : !q
  return %1#0, %1#1 : tensor<4x16xf8E4M3FN>, tensor<4x1xf32>
}

// The scale took 1/2 of the tensor along: what the codes stand for is another
// number than what they were made of.
// CHECK-LABEL: func.func @quantize_by_another_scale
// CHECK: %[[Q:.*]] = fp8.quantize %arg0
// CHECK: %[[D:.*]] = fp8.dequantize %[[Q]]
// CHECK: %[[AGAIN:.*]] = fp8.quantize %[[D]]
// CHECK: return %[[AGAIN]]
func.func @quantize_by_another_scale(%x: tensor<4x8xf32>) -> !fp8.scaled<4x8xf8E4M3FN, block = [*, *], scale = f32> {
  %s = arith.constant dense<2.0> : tensor<1x1xf32>
  %si = arith.constant dense<0.25> : tensor<1x1xf32>
  %0 = fp8.quantize %x scale(%s, %si : tensor<1x1xf32>, tensor<1x1xf32>) : tensor<4x8xf32> -> !fp8.scaled<4x8xf8E4M3FN, block = [*, *], scale = f32>
  %1 = fp8.dequantize %0 : !fp8.scaled<4x8xf8E4M3FN, block = [*, *], scale = f32> -> tensor<4x8xf32>
  %2 = fp8.quantize %1 scale(%s, %si : tensor<1x1xf32>, tensor<1x1xf32>) : tensor<4x8xf32> -> !fp8.scaled<4x8xf8E4M3FN, block = [*, *], scale = f32>
  return %2 : !fp8.scaled<4x8xf8E4M3FN, block = [*, *], scale = f32>
}

// CHECK-LABEL: func.func @quantize_by_the_inverse
// CHECK: %[[Q:.*]] = fp8.quantize %arg0
// CHECK: return %[[Q]]
func.func @quantize_by_the_inverse(%x: tensor<4x8xf32>) -> !fp8.scaled<4x8xf8E4M3FN, block = [*, *], scale = f32> {
  %s = arith.constant dense<4.0> : tensor<1x1xf32>
  %si = arith.constant dense<0.25> : tensor<1x1xf32>
  %0 = fp8.quantize %x scale(%s, %si : tensor<1x1xf32>, tensor<1x1xf32>) : tensor<4x8xf32> -> !fp8.scaled<4x8xf8E4M3FN, block = [*, *], scale = f32>
  %1 = fp8.dequantize %0 : !fp8.scaled<4x8xf8E4M3FN, block = [*, *], scale = f32> -> tensor<4x8xf32>
  %2 = fp8.quantize %1 scale(%s, %si : tensor<1x1xf32>, tensor<1x1xf32>) : tensor<4x8xf32> -> !fp8.scaled<4x8xf8E4M3FN, block = [*, *], scale = f32>
  return %2 : !fp8.scaled<4x8xf8E4M3FN, block = [*, *], scale = f32>
}

// Equal products of a group have become one.
// CHECK-LABEL: func.func @sibling_matmuls_repeated
// CHECK: %[[R:.*]]:2 = fp8.sibling_matmuls {
// CHECK:   %[[G:.*]] = fp8.matmul %arg0, %arg1
// CHECK:   %[[U:.*]] = fp8.matmul %arg0, %arg2
// CHECK:   fp8.yield %[[U]], %[[G]] : tensor<32x16xf32>, tensor<32x32xf32>
// CHECK: } {fp8.name = "qkv"} : tensor<32x16xf32>, tensor<32x32xf32>
// CHECK: return %[[R]]#0, %[[R]]#1, %[[R]]#0
func.func @sibling_matmuls_repeated(%x: tensor<32x64xbf16>, %w: tensor<32x64xbf16>, %v: tensor<16x64xbf16>)
    -> (tensor<32x16xf32>, tensor<32x32xf32>, tensor<32x16xf32>) {
  %0:3 = fp8.sibling_matmuls {
    %g = fp8.matmul %x, %w accumulate = fast : tensor<32x64xbf16>, tensor<32x64xbf16> -> tensor<32x32xf32>
    %u = fp8.matmul %x, %v accumulate = fast : tensor<32x64xbf16>, tensor<16x64xbf16> -> tensor<32x16xf32>
    fp8.yield %u, %g, %u : tensor<32x16xf32>, tensor<32x32xf32>, tensor<32x16xf32>
  } {fp8.name = "qkv"} : tensor<32x16xf32>, tensor<32x32xf32>, tensor<32x16xf32>
  return %0#0, %0#1, %0#2 : tensor<32x16xf32>, tensor<32x32xf32>, tensor<32x16xf32>
}

// CHECK-LABEL: func.func @sibling_matmuls_alone
// CHECK-NOT: fp8.sibling_matmuls
// CHECK: %[[G:.*]] = fp8.matmul %arg0, %arg1
// CHECK: return %[[G]], %[[G]]
func.func @sibling_matmuls_alone(%x: tensor<32x64xbf16>, %w: tensor<32x64xbf16>) -> (tensor<32x32xf32>, tensor<32x32xf32>) {
  %0:2 = fp8.sibling_matmuls {
    %g = fp8.matmul %x, %w accumulate = fast : tensor<32x64xbf16>, tensor<32x64xbf16> -> tensor<32x32xf32>
    fp8.yield %g, %g : tensor<32x32xf32>, tensor<32x32xf32>
  } : tensor<32x32xf32>, tensor<32x32xf32>
  return %0#0, %0#1 : tensor<32x32xf32>, tensor<32x32xf32>
}

// Whoever chose how a group is computed chose it for the group.
// CHECK-LABEL: func.func @sibling_matmuls_alone_with_config
// CHECK: fp8.sibling_matmuls
func.func @sibling_matmuls_alone_with_config(%x: tensor<32x64xbf16>, %w: tensor<32x64xbf16>) -> tensor<32x32xf32> {
  %0 = fp8.sibling_matmuls {
    %g = fp8.matmul %x, %w accumulate = fast : tensor<32x64xbf16>, tensor<32x64xbf16> -> tensor<32x32xf32>
    fp8.yield %g : tensor<32x32xf32>
  } {fp8_gpu.config = #fp8_sm90.gemm<tile_m = 64, tile_n = 32, stages = 4, consumers = 1>} : tensor<32x32xf32>
  return %0 : tensor<32x32xf32>
}
