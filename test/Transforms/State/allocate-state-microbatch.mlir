// RUN: fp8-opt %s --fp8-pipeline="recipe=delayed to=recipe" --fp8-allocate-state --fp8-verify-state | FileCheck %s
// RUN: fp8-opt %s --fp8-pipeline="recipe=delayed to=recipe" --fp8-allocate-state=cache-weights=false | FileCheck %s --check-prefix=OFF
// RUN: fp8-opt %s --fp8-pipeline="recipe=delayed stats to=fusion" | FileCheck %s --check-prefix=STATS

// The weight is quantized in the first micro-batch only; 64 x 16 codes and a
// factor are kept.
// CHECK: [#fp8.slot<"l0.x" : f8E4M3FN, fprop activation>, #fp8.slot<"l0.w" : f8E4M3FN, fprop weight, cache = 1028>,
// CHECK-SAME: #fp8.slot<"l1.w" : f8E4M3FN, fprop weight>
// Statistics know it by the name of its slot, though it feeds no matmul now.
// STATS: fp8.stats_slots = ["l0.x", "l0.w", "l1.x", "l1.w"]
// CHECK-LABEL: func.func @train(
// CHECK-SAME: %[[FIRST:[a-z0-9]+]]: i1 {fp8.first_microbatch}, %[[STATE:[a-z0-9]+]]: !fp8.state)
// CHECK: fp8.record_amax
// CHECK: scf.if %[[FIRST]] {
// CHECK: fp8.read_scale %[[STATE]][%[[SLOT:.*]]] : tensor<1x1xf32>
// CHECK: %[[Q:.*]] = fp8.quantize
// CHECK: fp8.record_amax %{{.*}}, %[[STATE]][%[[SLOT]]]
// CHECK: fp8.store_cached %[[Q]], %[[STATE]][%[[SLOT]]]
// CHECK: }
// CHECK: %[[KEPT:.*]] = fp8.load_cached %[[STATE]][%[[SLOT]]] : <16x64xf8E4M3FN, block = [*, *], scale = f32>
// CHECK: fp8.dequantize %[[KEPT]]
// OFF-LABEL: func.func @train(
// OFF-NOT: cached
func.func @train(%x: tensor<32x64xbf16>, %w: tensor<64x16xbf16> {fp8.weight}, %first: i1 {fp8.first_microbatch}) -> tensor<32x16xf32> {
  %zero = arith.constant dense<0.0> : tensor<32x16xf32>
  %y = linalg.matmul {fp8.name = "l0"} ins(%x, %w : tensor<32x64xbf16>, tensor<64x16xbf16>) outs(%zero : tensor<32x16xf32>) -> tensor<32x16xf32>
  return %y : tensor<32x16xf32>
}

// A weight whose extent is not known has no cache.
// CHECK-LABEL: func.func @dynamic(
// CHECK-NOT: scf.if
// CHECK: return
func.func @dynamic(%w: tensor<64x?xbf16> {fp8.weight}, %x: tensor<32x64xbf16>, %y: tensor<32x?xf32>, %first: i1 {fp8.first_microbatch}) -> tensor<32x?xf32> {
  %0 = linalg.matmul {fp8.name = "l1"} ins(%x, %w : tensor<32x64xbf16>, tensor<64x?xbf16>) outs(%y : tensor<32x?xf32>) -> tensor<32x?xf32>
  return %0 : tensor<32x?xf32>
}
