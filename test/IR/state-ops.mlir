// RUN: fp8-opt %s | fp8-opt | FileCheck %s
// RUN: fp8-opt %s --emit-bytecode | fp8-opt | FileCheck %s
// RUN: fp8-opt %s --mlir-print-op-generic | fp8-opt | FileCheck %s
// RUN: fp8-opt %s | not grep '[^ ]  '

// CHECK: module attributes {fp8.state = #fp8.state_table<#fp8.delayed<amax_history_len = 16>, [#fp8.slot<"l0.x" : f8E4M3FN, fprop activation>, #fp8.slot<"l0.dy" : f8E5M2, dgrad gradient>, #fp8.slot<"l0.w" : f8E4M3FN, fprop weight, cache = 36>]>}
module attributes {fp8.state = #fp8.state_table<#fp8.delayed<amax_history_len = 16>,
    [#fp8.slot<"l0.x" : f8E4M3FN, fprop activation>, #fp8.slot<"l0.dy" : f8E5M2, dgrad gradient>,
     #fp8.slot<"l0.w" : f8E4M3FN, fprop weight, cache = 36>]>} {
  // CHECK-LABEL: @state
  // CHECK-SAME: !fp8.state
  func.func @state(%state: !fp8.state, %slot: index, %amax: tensor<1x1xf32>, %n: f64) -> tensor<1x1xf32> {
    // CHECK: fp8.read_scale %{{.*}}[%{{.*}}] : tensor<1x1xf32>
    %scale, %scale_inv = fp8.read_scale %state[%slot] : tensor<1x1xf32>
    // CHECK: fp8.record_amax %{{.*}}, %{{.*}}[%{{.*}}] : tensor<1x1xf32>
    fp8.record_amax %amax, %state[%slot] : tensor<1x1xf32>
    // CHECK: fp8.record_amax %{{.*}}, %{{.*}}[%{{.*}}] counts(%{{.*}}, %{{.*}}) : tensor<1x1xf32>
    fp8.record_amax %amax, %state[%slot] counts(%n, %n) : tensor<1x1xf32>
    // CHECK: %[[SO_FAR:.*]] = fp8.read_amax %{{.*}}[%{{.*}}] : tensor<1x1xf32>
    %so_far = fp8.read_amax %state[%slot] : tensor<1x1xf32>
    // CHECK: fp8.record_amax %[[SO_FAR]], %{{.*}}[%{{.*}}] in_place : tensor<1x1xf32>
    fp8.record_amax %so_far, %state[%slot] in_place : tensor<1x1xf32>
    // CHECK: fp8.read_seed %{{.*}}[%{{.*}}] : tensor<4xi32>
    %seed = fp8.read_seed %state[%slot] : tensor<4xi32>
    // CHECK: %[[Q:.*]] = fp8.load_cached %{{.*}}[%{{.*}}] : <4x8xf8E4M3FN, block = [*, *], scale = f32>
    %q = fp8.load_cached %state[%slot] : !fp8.scaled<4x8xf8E4M3FN, block = [*, *], scale = f32>
    // CHECK: fp8.store_cached %[[Q]], %{{.*}}[%{{.*}}] : <4x8xf8E4M3FN, block = [*, *], scale = f32>
    fp8.store_cached %q, %state[%slot] : !fp8.scaled<4x8xf8E4M3FN, block = [*, *], scale = f32>
    return %scale : tensor<1x1xf32>
  }

  // CHECK-LABEL: @update_state
  func.func @update_state(%state: !fp8.state) {
    // CHECK: fp8.update_state %{{.*}} table(<#fp8.delayed<amax_history_len = 16>, [#fp8.slot<"l0.x" : f8E4M3FN, fprop activation>]>)
    fp8.update_state %state table(<#fp8.delayed<amax_history_len = 16>, [#fp8.slot<"l0.x" : f8E4M3FN, fprop activation>]>)
    return
  }

  // CHECK-LABEL: @update_scales
  func.func @update_scales(%scale: tensor<1xf32>, %amax: tensor<1xf32>, %history: tensor<16x1xf32>) -> tensor<16x1xf32> {
    // CHECK: fp8.update_scales %{{.*}}, %{{.*}}, %{{.*}} table(<#fp8.delayed<amax_history_len = 16>, [#fp8.slot<"l0.x" : f8E4M3FN, fprop activation>]>) : tensor<1xf32>, tensor<16x1xf32>
    %0, %1 = fp8.update_scales %scale, %amax, %history
        table(#fp8.state_table<#fp8.delayed<amax_history_len = 16>, [#fp8.slot<"l0.x" : f8E4M3FN, fprop activation>]>)
        : tensor<1xf32>, tensor<16x1xf32>
    return %1 : tensor<16x1xf32>
  }
}
