// RUN: fp8-opt %s --split-input-file --fp8-pipeline="recipe=delayed,amax_history_len=16 to=recipe" --fp8-simplify-casts --cse --fp8-allocate-state | FileCheck %s
// RUN: fp8-opt %s --split-input-file --fp8-pipeline="recipe=delayed,amax_history_len=16 to=recipe" --fp8-simplify-casts --cse --fp8-allocate-state=counts | FileCheck %s --check-prefix=COUNTS

// A slot for each operand, in program order.
// CHECK: module attributes {fp8.state = #fp8.state_table<#fp8.delayed<amax_history_len = 16>,
// CHECK-SAME: [#fp8.slot<"l0.x" : f8E4M3FN, fprop activation>, #fp8.slot<"l0.w" : f8E4M3FN, fprop weight>]>}
// CHECK-LABEL: func.func @linear(
// CHECK-SAME: %[[X:.*]]: tensor<32x64xbf16>, %[[W:.*]]: tensor<16x64xbf16> {fp8.weight}, %[[STATE:.*]]: !fp8.state)
// CHECK: %[[C0:.*]] = arith.constant 0 : index
// CHECK: %[[S:.*]], %[[SI:.*]] = fp8.read_scale %[[STATE]][%[[C0]]] : tensor<1x1xf32>
// CHECK: fp8.quantize %[[X]] scale(%[[S]], %[[SI]] : tensor<1x1xf32>, tensor<1x1xf32>)
// CHECK: %[[AMAX:.*]] = fp8.amax %[[X]] block = [*, *] : tensor<32x64xbf16>
// CHECK: fp8.record_amax %[[AMAX]], %[[STATE]][%[[C0]]] : tensor<1x1xf32>
// CHECK: %[[C1:.*]] = arith.constant 1 : index
// CHECK: fp8.read_scale %[[STATE]][%[[C1]]]
// CHECK: fp8.record_amax %{{.*}}, %[[STATE]][%[[C1]]]
// COUNTS-LABEL: func.func @linear(
// COUNTS: %[[Q:[a-z0-9]+]] = fp8.quantize %[[X:[a-z0-9]+]] scale
// COUNTS: %{{.*}}, %[[UNDERFLOW:.*]], %[[SATURATED:.*]], %{{.*}}, %{{.*}} = fp8.measure %[[X]], %[[Q]]
// COUNTS: fp8.record_amax %{{.*}}, %{{.*}}[%{{.*}}] counts(%[[UNDERFLOW]], %[[SATURATED]])
func.func @linear(%x: tensor<32x64xbf16>, %w: tensor<16x64xbf16> {fp8.weight}) -> tensor<32x16xf32> {
  %zero = arith.constant dense<0.0> : tensor<32x16xf32>
  %y = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>]
      {fp8.name = "l0"} ins(%x, %w : tensor<32x64xbf16>, tensor<16x64xbf16>) outs(%zero : tensor<32x16xf32>) -> tensor<32x16xf32>
  return %y : tensor<32x16xf32>
}

// -----

// One tensor in several products is quantized once, and named after the
// forward; gradients are E5M2.
// CHECK: #fp8.state_table<#fp8.delayed<amax_history_len = 16>,
// CHECK-SAME: [#fp8.slot<"l0.dgrad.dy" : f8E5M2, dgrad gradient>, #fp8.slot<"l0.w" : f8E4M3FN, fprop weight>, #fp8.slot<"l0.x" : f8E4M3FN, fprop activation>]>
// CHECK-LABEL: func.func @training(
// CHECK-COUNT-3: fp8.record_amax
// CHECK-NOT: fp8.record_amax
func.func @training(%x: tensor<32x64xbf16>, %w: tensor<16x64xbf16> {fp8.weight}, %dy: tensor<32x16xbf16> {fp8.grad})
    -> (tensor<32x64xf32>, tensor<32x16xf32>, tensor<16x64xf32>) {
  %zero0 = arith.constant dense<0.0> : tensor<32x64xf32>
  %dx = linalg.matmul {fp8.name = "l0.dgrad"} ins(%dy, %w : tensor<32x16xbf16>, tensor<16x64xbf16>) outs(%zero0 : tensor<32x64xf32>) -> tensor<32x64xf32>
  %zero1 = arith.constant dense<0.0> : tensor<32x16xf32>
  %y = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>]
      {fp8.name = "l0"} ins(%x, %w : tensor<32x64xbf16>, tensor<16x64xbf16>) outs(%zero1 : tensor<32x16xf32>) -> tensor<32x16xf32>
  %zero2 = arith.constant dense<0.0> : tensor<16x64xf32>
  %dw = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
      {fp8.name = "l0.wgrad"} ins(%dy, %x : tensor<32x16xbf16>, tensor<32x64xbf16>) outs(%zero2 : tensor<16x64xf32>) -> tensor<16x64xf32>
  return %dx, %y, %dw : tensor<32x64xf32>, tensor<32x16xf32>, tensor<16x64xf32>
}

// -----

// Two activations.
// CHECK: [#fp8.slot<"scores.a" : f8E4M3FN, fprop activation>, #fp8.slot<"scores.b" : f8E4M3FN, fprop activation>]
func.func @attention(%q: tensor<4x32x64xbf16>, %k: tensor<4x64x32xbf16>) -> tensor<4x32x32xf32> {
  %zero = arith.constant dense<0.0> : tensor<4x32x32xf32>
  %s = linalg.batch_matmul {fp8.name = "scores"} ins(%q, %k : tensor<4x32x64xbf16>, tensor<4x64x32xbf16>) outs(%zero : tensor<4x32x32xf32>) -> tensor<4x32x32xf32>
  return %s : tensor<4x32x32xf32>
}

// -----

// Other recipes need no state.
// CHECK: module {
// CHECK-LABEL: func.func @stateless(
// CHECK-NOT: !fp8.state
func.func @stateless(%x: tensor<32x64xbf16>, %w: tensor<64x16xbf16>) -> tensor<32x16xf32> attributes {fp8.recipe = #fp8.current} {
  %zero = arith.constant dense<0.0> : tensor<32x16xf32>
  %y = linalg.matmul ins(%x, %w : tensor<32x64xbf16>, tensor<64x16xbf16>) outs(%zero : tensor<32x16xf32>) -> tensor<32x16xf32>
  return %y : tensor<32x16xf32>
}

// -----

// A quantize may have a name of its own; one that feeds nothing is numbered.
// CHECK: [#fp8.slot<"mine" : f8E4M3FN, fprop activation>, #fp8.slot<"quantize" : f8E5M2, fprop activation>, #fp8.slot<"quantize_1" : f8E4M3FN, fprop activation>]
!e4m3 = !fp8.scaled<32x64xf8E4M3FN, block = [*, *], scale = f32>
!e5m2 = !fp8.scaled<32x64xf8E5M2, block = [*, *], scale = f32>
func.func @quantizes(%x: tensor<32x64xbf16>, %y: tensor<32x64xbf16>) -> (!e4m3, !e5m2, !e4m3) {
  %0 = fp8.quantize %x recipe(#fp8.delayed<amax_history_len = 16>) {fp8.name = "mine"} : tensor<32x64xbf16> -> !e4m3
  %1 = fp8.quantize %x recipe(#fp8.delayed<amax_history_len = 16>) : tensor<32x64xbf16> -> !e5m2
  %2 = fp8.quantize %y recipe(#fp8.delayed<amax_history_len = 16>) : tensor<32x64xbf16> -> !e4m3
  return %0, %1, %2 : !e4m3, !e5m2, !e4m3
}

// -----

// Format and accumulation belong to a tensor, not to the state.
// CHECK: #fp8.state_table<#fp8.delayed,
!e4m3 = !fp8.scaled<32x64xf8E4M3FN, block = [*, *], scale = f32>
!e5m2 = !fp8.scaled<32x64xf8E5M2, block = [*, *], scale = f32>
func.func @mixed(%x: tensor<32x64xbf16>, %y: tensor<32x64xbf16>) -> (!e4m3, !e5m2) {
  %0 = fp8.quantize %x recipe(#fp8.delayed<format = e4m3>) : tensor<32x64xbf16> -> !e4m3
  %1 = fp8.quantize %y recipe(#fp8.delayed<accumulate = fast>) : tensor<32x64xbf16> -> !e5m2
  return %0, %1 : !e4m3, !e5m2
}

// -----

// Flax takes the NaN of a tensor into its amax.
// CHECK-LABEL: func.func @flax(
// CHECK: fp8.amax %{{.*}} block = [*, *] propagate_nan
!e4m3 = !fp8.scaled<32x64xf8E4M3FN, block = [*, *], scale = f32>
func.func @flax(%x: tensor<32x64xbf16>) -> !e4m3 {
  %0 = fp8.quantize %x recipe(#fp8.delayed<compat = flax>) : tensor<32x64xbf16> -> !e4m3
  return %0 : !e4m3
}
