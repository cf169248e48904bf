// RUN: fp8-opt %s --fp8-instrument-quantize --split-input-file | FileCheck %s

!a = !fp8.scaled<?x64xf8E4M3FN, block = [*, *], scale = f32>
!at = !fp8.scaled<64x?xf8E4M3FN, block = [*, *], scale = f32>
!b = !fp8.scaled<16x64xf8E4M3FN, block = [*, *], scale = f32>

// Slots are numbered in program order and named after the use, also through a
// transpose. Of `fc` nothing says what its operands hold.
// CHECK: module attributes {fp8.stats_slots = ["fc.a", "fc.b", "quantize_2"]}
// CHECK: func.func private @fp8rt_stats_record(i64, f64, f64, f64, f64, f64, f64)
// CHECK-LABEL: func.func @f
// CHECK-SAME: %[[X:[^:]*]]: tensor<64x?xf32>
func.func @f(%x: tensor<64x?xf32>, %w: tensor<16x64xf32>, %s: tensor<1x1xf32>) -> (tensor<?x16xf32>, !b) {
  // CHECK: %[[Q:.*]] = fp8.quantize %[[X]]
  // CHECK-NEXT: %[[AMAX:[^,]*]], %[[UNDER:[^,]*]], %[[SAT:[^,]*]], %[[SIGNAL:[^,]*]], %[[NOISE:[^ ]*]] = fp8.measure %[[X]], %[[Q]]
  // CHECK: %[[SIZE:.*]] = arith.sitofp
  // CHECK: %[[SLOT:.*]] = arith.constant 0 : i64
  // CHECK: call @fp8rt_stats_record(%[[SLOT]], %[[AMAX]], %[[SIZE]], %[[UNDER]], %[[SAT]], %[[SIGNAL]], %[[NOISE]])
  %0 = fp8.quantize %x scale(%s, %s : tensor<1x1xf32>, tensor<1x1xf32>) : tensor<64x?xf32> -> !at
  // CHECK: arith.constant 1 : i64
  %1 = fp8.quantize %w scale(%s, %s : tensor<1x1xf32>, tensor<1x1xf32>) : tensor<16x64xf32> -> !b
  // CHECK: arith.constant 2 : i64
  %2 = fp8.quantize %w scale(%s, %s : tensor<1x1xf32>, tensor<1x1xf32>) : tensor<16x64xf32> -> !b
  %3 = fp8.transpose %0 permutation = [1, 0] : !at
  %4 = fp8.matmul %3, %1 {fp8.name = "fc"} : !a, !b -> tensor<?x16xf32>
  return %4, %2 : tensor<?x16xf32>, !b
}

// -----

// CHECK: module {
// CHECK-NOT: fp8rt_stats_record
func.func @nothing_quantized() {
  return
}

// -----

!a = !fp8.scaled<64x64xf8E5M2, block = [*, *], scale = f32>

// Names are those of the slots of a scaling state: what the tensor holds, unless
// both operands hold the same, or the quantize's own name.
// CHECK: module attributes {fp8.stats_slots = ["g.dy", "g.w", "s.a", "s.b", "own"]}
func.func @names(%x: tensor<64x64xf32>, %s: tensor<1x1xf32>) -> (tensor<64x64xf32>, tensor<64x64xf32>, !a) {
  %0 = fp8.quantize %x scale(%s, %s : tensor<1x1xf32>, tensor<1x1xf32>) : tensor<64x64xf32> -> !a
  %1 = fp8.quantize %x scale(%s, %s : tensor<1x1xf32>, tensor<1x1xf32>) : tensor<64x64xf32> -> !a
  %2 = fp8.quantize %x scale(%s, %s : tensor<1x1xf32>, tensor<1x1xf32>) : tensor<64x64xf32> -> !a
  %3 = fp8.quantize %x scale(%s, %s : tensor<1x1xf32>, tensor<1x1xf32>) : tensor<64x64xf32> -> !a
  %4 = fp8.quantize %x scale(%s, %s : tensor<1x1xf32>, tensor<1x1xf32>) {fp8.name = "own"} : tensor<64x64xf32> -> !a
  %5 = fp8.matmul %0, %1 {fp8.name = "g", fp8.operands = [#fp8.operand<gradient>, #fp8.operand<weight>]} : !a, !a -> tensor<64x64xf32>
  %6 = fp8.matmul %2, %3 {fp8.name = "s", fp8.operands = [#fp8.operand<activation>, #fp8.operand<activation>]} : !a, !a -> tensor<64x64xf32>
  return %5, %6, %4 : tensor<64x64xf32>, tensor<64x64xf32>, !a
}
