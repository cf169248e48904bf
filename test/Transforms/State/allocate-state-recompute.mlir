// RUN: fp8-opt %s --fp8-pipeline="recipe=delayed to=recipe" --fp8-simplify-casts --fp8-allocate-state | FileCheck %s

// A repeated forward reads the scales of the first and records nothing.
// CHECK: [#fp8.slot<"l0.x" : f8E4M3FN, fprop activation>, #fp8.slot<"l0.w" : f8E4M3FN, fprop weight>]
// CHECK-LABEL: func.func @recompute(
// CHECK: fp8.read_scale %[[STATE:.*]][%[[X:.*]]]
// CHECK: fp8.record_amax %{{.*}}, %[[STATE]][%[[X]]]
// CHECK: fp8.read_scale %[[STATE]][%[[W:.*]]]
// CHECK: fp8.record_amax %{{.*}}, %[[STATE]][%[[W]]]
// CHECK: fp8.read_scale %[[STATE]][%c0
// CHECK: fp8.read_scale %[[STATE]][%c1
// CHECK-NOT: fp8.record_amax
func.func @recompute(%x: tensor<32x64xbf16>, %w: tensor<64x16xbf16>) -> (tensor<32x16xf32>, tensor<32x16xf32>) {
  %zero = arith.constant dense<0.0> : tensor<32x16xf32>
  %y = linalg.matmul {fp8.name = "l0"} ins(%x, %w : tensor<32x64xbf16>, tensor<64x16xbf16>) outs(%zero : tensor<32x16xf32>) -> tensor<32x16xf32>
  %again = linalg.matmul {fp8.name = "l0", fp8.recompute} ins(%x, %w : tensor<32x64xbf16>, tensor<64x16xbf16>) outs(%zero : tensor<32x16xf32>) -> tensor<32x16xf32>
  return %y, %again : tensor<32x16xf32>, tensor<32x16xf32>
}
