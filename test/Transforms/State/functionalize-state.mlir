// RUN: fp8-opt %s --split-input-file --fp8-allocate-state --fp8-functionalize-state | FileCheck %s

!q = !fp8.scaled<8x16xf8E4M3FN, block = [*, *], scale = f32>

// The state of a public function becomes scale and history, in and out.
// CHECK: module {
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<8x16xbf16>,
// CHECK-SAME: %[[SCALE:[a-z0-9]+]]: tensor<2xf32> {fp8.name = "fp8.state.scale"},
// CHECK-SAME: %[[HISTORY:[a-z0-9]+]]: tensor<16x2xf32> {fp8.name = "fp8.state.amax_history"})
// CHECK-SAME: -> (tensor<8x16xbf16>, tensor<2xf32> {fp8.name = "fp8.state.scale"}, tensor<16x2xf32> {fp8.name = "fp8.state.amax_history"})
// CHECK: %[[AMAX:.*]] = arith.constant dense<0.000000e+00> : tensor<2xf32>
// CHECK: %[[S:.*]] = tensor.extract %[[SCALE]][%[[C0:.*]]]
// CHECK: %[[SI:.*]] = arith.divf %{{.*}}, %[[S]]
// CHECK: %[[S1:.*]] = tensor.from_elements %[[S]] : tensor<1x1xf32>
// CHECK: %[[SI1:.*]] = tensor.from_elements %[[SI]] : tensor<1x1xf32>
// CHECK: fp8.quantize %[[X]] scale(%[[S1]], %[[SI1]]
// CHECK: %[[NEW:.*]] = tensor.extract %{{.*}}[%{{.*}}, %{{.*}}] : tensor<1x1xf32>
// CHECK: %[[OLD:.*]] = tensor.extract %[[AMAX]][%[[C0]]]
// CHECK: %[[MAX:.*]] = arith.maxui
// CHECK: %[[VALUE:.*]] = arith.bitcast %[[MAX]] : i32 to f32
// CHECK: %[[AMAX1:.*]] = tensor.insert %[[VALUE]] into %[[AMAX]][%[[C0]]]
// CHECK: %[[AMAX2:.*]] = tensor.insert %{{.*}} into %[[AMAX1]]
// CHECK: %[[NEW_SCALE:.*]], %[[NEW_HISTORY:.*]] = fp8.update_scales %[[SCALE]], %[[AMAX2]], %[[HISTORY]] table(<#fp8.delayed<amax_history_len = 16>,
// CHECK: return %[[X]], %[[NEW_SCALE]], %[[NEW_HISTORY]]
func.func @main(%x: tensor<8x16xbf16>) -> tensor<8x16xbf16> {
  %0 = fp8.quantize %x recipe(#fp8.delayed<amax_history_len = 16>) {fp8.name = "x"} : tensor<8x16xbf16> -> !q
  %1 = fp8.quantize %x recipe(#fp8.delayed<amax_history_len = 16>) {fp8.name = "y"} : tensor<8x16xbf16> -> !q
  return %x : tensor<8x16xbf16>
}

// -----

!q = !fp8.scaled<8x16xf8E4M3FN, block = [*, *], scale = f32>

// Private functions take what has been recorded and return what they add.
// CHECK-LABEL: func.func private @layer(
// CHECK-SAME: %{{[a-z0-9]+}}: tensor<8x16xbf16>, %[[SCALE:[a-z0-9]+]]: tensor<2xf32>, %[[AMAX:[a-z0-9]+]]: tensor<2xf32>, %[[FIRST:[a-z0-9]+]]: index) -> (tensor<8x16xbf16>, tensor<2xf32>)
// CHECK: %[[OUT:.*]] = tensor.insert %{{.*}} into %[[AMAX]]
// CHECK: return %{{.*}}, %[[OUT]]
// CHECK-LABEL: func.func @calls(
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<8x16xbf16>, %[[SCALE:[a-z0-9]+]]: tensor<2xf32>
// CHECK: %[[ZERO:.*]] = arith.constant dense<0.000000e+00>
// CHECK: %[[A:.*]]:2 = call @layer(%[[X]], %[[SCALE]], %[[ZERO]], %c0
// CHECK: %[[B:.*]]:2 = call @layer(%[[A]]#0, %[[SCALE]], %[[A]]#1, %c1
// CHECK: fp8.update_scales %[[SCALE]], %[[B]]#1
func.func private @layer(%x: tensor<8x16xbf16>) -> tensor<8x16xbf16> {
  %0 = fp8.quantize %x recipe(#fp8.delayed) {fp8.name = "x"} : tensor<8x16xbf16> -> !q
  return %x : tensor<8x16xbf16>
}
func.func @calls(%x: tensor<8x16xbf16>) -> tensor<8x16xbf16> {
  %0 = call @layer(%x) {fp8.name = "a"} : (tensor<8x16xbf16>) -> tensor<8x16xbf16>
  %1 = call @layer(%0) {fp8.name = "b"} : (tensor<8x16xbf16>) -> tensor<8x16xbf16>
  return %1 : tensor<8x16xbf16>
}

// -----

!q = !fp8.scaled<8x16xf8E4M3FN, block = [*, *], scale = f32>

// CHECK-LABEL: func.func @control_flow(
// CHECK: %[[FOR:.*]]:2 = scf.for {{.*}} iter_args(%{{.*}} = %{{.*}}, %[[CARRIED:.*]] = %{{.*}}) -> (tensor<8x16xbf16>, tensor<4xf32>)
// CHECK: %[[NEXT:.*]] = tensor.insert %{{.*}} into %[[CARRIED]]
// CHECK: scf.yield %{{.*}}, %[[NEXT]]
// CHECK: %[[IF:.*]] = scf.if %{{.*}} -> (tensor<4xf32>) {
// CHECK: %[[THEN:.*]] = tensor.insert %{{.*}} into %[[FOR]]#1
// CHECK: scf.yield %[[THEN]]
// CHECK: } else {
// CHECK: scf.yield %[[FOR]]#1
// CHECK: %[[WHILE:.*]]:2 = scf.while (%{{.*}} = %{{.*}}, %[[BEFORE:.*]] = %[[IF]])
// CHECK: %[[CONDITION:.*]] = tensor.insert %{{.*}} into %[[BEFORE]]
// CHECK: scf.condition(%{{.*}}) %{{.*}}, %[[CONDITION]]
// CHECK: ^bb0(%{{.*}}, %[[AFTER:.*]]: tensor<4xf32>):
// CHECK: %[[LAST:.*]] = tensor.insert %{{.*}} into %[[AFTER]]
// CHECK: scf.yield %{{.*}}, %[[LAST]]
// CHECK: fp8.update_scales %{{.*}}, %[[WHILE]]#1
func.func @control_flow(%x: tensor<8x16xbf16>, %n: index, %c: i1) -> tensor<8x16xbf16> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %y = scf.for %i = %c0 to %n step %c1 iter_args(%a = %x) -> tensor<8x16xbf16> {
    %0 = fp8.quantize %a recipe(#fp8.delayed) {fp8.name = "for"} : tensor<8x16xbf16> -> !q
    scf.yield %a : tensor<8x16xbf16>
  }
  scf.if %c {
    %0 = fp8.quantize %y recipe(#fp8.delayed) {fp8.name = "if"} : tensor<8x16xbf16> -> !q
  }
  %z = scf.while (%a = %y) : (tensor<8x16xbf16>) -> tensor<8x16xbf16> {
    %0 = fp8.quantize %a recipe(#fp8.delayed) {fp8.name = "before"} : tensor<8x16xbf16> -> !q
    scf.condition(%c) %a : tensor<8x16xbf16>
  } do {
  ^bb0(%b: tensor<8x16xbf16>):
    %0 = fp8.quantize %b recipe(#fp8.delayed) {fp8.name = "after"} : tensor<8x16xbf16> -> !q
    scf.yield %b : tensor<8x16xbf16>
  }
  return %z : tensor<8x16xbf16>
}
