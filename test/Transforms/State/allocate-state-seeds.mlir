// RUN: fp8-opt %s --split-input-file --fp8-allocate-state --fp8-infer-scales --fp8-verify-state | FileCheck %s
// RUN: fp8-opt %s --split-input-file --fp8-allocate-state --fp8-infer-scales --fp8-functionalize-state | FileCheck %s --check-prefix=TENSORS

!q = !fp8.scaled<8x32xf4E2M1FN, block = [1, 16], scale = f8E4M3FN, tensor_scale = f32>
!t = !fp8.scaled<8x32xf4E2M1FN, block = [16, 1], scale = f8E4M3FN, tensor_scale = f32>

// What is rounded stochastically has a slot with a seed, and a scale of its own amax; the rest has no slot.
// CHECK: module attributes {fp8.state = #fp8.state_table<#fp8.nvfp4<stochastic_rounding = true>, [#fp8.slot<"dy" : f4E2M1FN, fprop activation>, #fp8.slot<"dyt" : f4E2M1FN, fprop activation>]>}
// CHECK-LABEL: func.func @seeds(
// CHECK-SAME: %[[X:.*]]: tensor<8x32xbf16>, %[[STATE:.*]]: !fp8.state)
// CHECK-NOT: fp8.read_scale
// CHECK-NOT: fp8.record_amax
// CHECK: fp8.quantize %[[X]] scale({{.*}}) tensor_scale_inv({{.*}}) {fp8.name = "x"} : tensor<8x32xbf16>
// CHECK: %[[SEED:.*]] = fp8.read_seed %[[STATE]][%c0] : tensor<4xi32>
// CHECK: %[[SCALE:.*]], %[[INV:.*]], %[[T:.*]] = fp8.compute_scale
// CHECK: fp8.quantize %[[X]] scale(%[[SCALE]], %[[INV]] : {{.*}}) tensor_scale_inv(%[[T]] : {{.*}}) seed(%[[SEED]] : tensor<4xi32>) {fp8.name = "dy"}
// CHECK: %[[SECOND:.*]] = fp8.read_seed %[[STATE]][%c1]
// CHECK: fp8.quantize %[[X]] {{.*}} seed(%[[SECOND]] : tensor<4xi32>)

// TENSORS-LABEL: func.func @seeds(
// TENSORS-SAME: %[[SCALE:[a-z0-9]+]]: tensor<2xf32> {fp8.name = "fp8.state.scale"}, %[[WORDS:[a-z0-9]+]]: tensor<2x4xi32> {fp8.name = "fp8.state.words"})
// TENSORS-SAME: -> (tensor<2xf32> {fp8.name = "fp8.state.scale"}, tensor<2x4xi32> {fp8.name = "fp8.state.words"})
// TENSORS: tensor.extract %[[WORDS]][%[[SLOT:.*]], %{{.*}}] : tensor<2x4xi32>
// TENSORS: %[[LAST:.*]] = tensor.extract %[[WORDS]]
// TENSORS: %[[INDEX:.*]] = arith.index_cast %[[SLOT]] : index to i32
// TENSORS: %[[SUM:.*]] = arith.addi %{{.*}}, %[[INDEX]] : i32
// TENSORS: tensor.from_elements %{{.*}}, %{{.*}}, %{{.*}}, %[[SUM]] : tensor<4xi32>
// TENSORS: %[[NEW:.*]], %[[NEW_WORDS:.*]] = fp8.update_scales %[[SCALE]], %{{.*}}, %[[WORDS]]
// TENSORS: return %[[NEW]], %[[NEW_WORDS]]
func.func @seeds(%x: tensor<8x32xbf16>) {
  %0 = fp8.quantize %x recipe(#fp8.nvfp4) {fp8.name = "x"} : tensor<8x32xbf16> -> !q
  %1 = fp8.quantize %x recipe(#fp8.nvfp4<stochastic_rounding = true>) {fp8.name = "dy"} : tensor<8x32xbf16> -> !q
  %2 = fp8.quantize %x recipe(#fp8.nvfp4<stochastic_rounding = true>) {fp8.name = "dyt"} : tensor<8x32xbf16> -> !t
  return
}

// -----

!q = !fp8.scaled<8x32xf4E2M1FN, block = [1, 16], scale = f8E4M3FN, tensor_scale = f32>

// Functions that are called take the words, too.
// CHECK-LABEL: func.func private @layer(
// CHECK-SAME: %[[STATE:[a-z0-9]+]]: !fp8.state, %[[FIRST:[a-z0-9]+]]: index)
// CHECK: %[[SLOT:.*]] = arith.addi %[[FIRST]], %c0
// CHECK: fp8.read_seed %[[STATE]][%[[SLOT]]]
// TENSORS-LABEL: func.func private @layer(
// TENSORS-SAME: %[[SCALE:[a-z0-9]+]]: tensor<2xf32>, %[[AMAX:[a-z0-9]+]]: tensor<2xf32>, %[[WORDS:[a-z0-9]+]]: tensor<2x4xi32>, %{{[a-z0-9]+}}: index)
// TENSORS: tensor.extract %[[WORDS]]
// TENSORS-LABEL: func.func @loop(
// TENSORS: call @layer(%{{.*}}, %{{.*}}, %{{.*}}, %[[WORDS:.*]], %{{.*}}) {{.*}}tensor<2x4xi32>
// TENSORS: fp8.update_scales %{{.*}}, %{{.*}}, %[[WORDS]]
func.func private @layer(%x: tensor<8x32xbf16>) {
  %0 = fp8.quantize %x recipe(#fp8.nvfp4<stochastic_rounding = true>) {fp8.name = "dy"} : tensor<8x32xbf16> -> !q
  return
}
func.func @loop(%x: tensor<8x32xbf16>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  scf.for %i = %c0 to %c2 step %c1 {
    func.call @layer(%x) {fp8.name = "l"} : (tensor<8x32xbf16>) -> ()
  } {fp8.slots = "separate", fp8.name = "layers"}
  return
}
