// RUN: fp8-opt %s --split-input-file --fp8-allocate-state | FileCheck %s

!q = !fp8.scaled<8x16xf8E4M3FN, block = [*, *], scale = f32>

// A function has slots of its own for each call, after the call's name, else
// the callee's.
// CHECK: [#fp8.slot<"embed" : f8E4M3FN, fprop activation>, #fp8.slot<"l0.x" : f8E4M3FN, fprop activation>, #fp8.slot<"l0.h" : f8E4M3FN, fprop activation>,
// CHECK-SAME: #fp8.slot<"layer.x" : f8E4M3FN, fprop activation>, #fp8.slot<"layer.h" : f8E4M3FN, fprop activation>,
// CHECK-SAME: #fp8.slot<"layer_1.x" : f8E4M3FN, fprop activation>, #fp8.slot<"layer_1.h" : f8E4M3FN, fprop activation>]
// CHECK-LABEL: func.func private @layer(
// CHECK-SAME: %[[STATE:[a-z0-9]+]]: !fp8.state, %[[FIRST:[a-z0-9]+]]: index)
// CHECK: %[[X:.*]] = arith.addi %[[FIRST]], %c0
// CHECK: fp8.read_scale %[[STATE]][%[[X]]]
// CHECK: %[[H:.*]] = arith.addi %[[FIRST]], %c1
// CHECK: fp8.read_scale %[[STATE]][%[[H]]]
// CHECK-LABEL: func.func @calls(
// CHECK: call @layer(%{{.*}}, %{{.*}}, %[[MAIN:.*]], %c1)
// CHECK: call @layer(%{{.*}}, %{{.*}}, %[[MAIN]], %c3)
// CHECK: call @layer(%{{.*}}, %{{.*}}, %[[MAIN]], %c5)
func.func private @layer(%x: tensor<8x16xbf16>, %h: tensor<8x16xbf16>) {
  %0 = fp8.quantize %x recipe(#fp8.delayed) {fp8.name = "x"} : tensor<8x16xbf16> -> !q
  %1 = fp8.quantize %h recipe(#fp8.delayed) {fp8.name = "h"} : tensor<8x16xbf16> -> !q
  return
}
func.func @calls(%x: tensor<8x16xbf16>) {
  %0 = fp8.quantize %x recipe(#fp8.delayed) {fp8.name = "embed"} : tensor<8x16xbf16> -> !q
  call @layer(%x, %x) {fp8.name = "l0"} : (tensor<8x16xbf16>, tensor<8x16xbf16>) -> ()
  call @layer(%x, %x) : (tensor<8x16xbf16>, tensor<8x16xbf16>) -> ()
  call @layer(%x, %x) : (tensor<8x16xbf16>, tensor<8x16xbf16>) -> ()
  return
}

// -----

!q = !fp8.scaled<8x16xf8E4M3FN, block = [*, *], scale = f32>

// Calls inside calls.
// CHECK: [#fp8.slot<"b0.a.x" : {{.*}}#fp8.slot<"b0.b.x" : {{.*}}#fp8.slot<"b1.a.x" : {{.*}}#fp8.slot<"b1.b.x" :
// CHECK-LABEL: func.func private @block(
// CHECK-SAME: %[[STATE:[a-z0-9]+]]: !fp8.state, %[[FIRST:[a-z0-9]+]]: index)
// CHECK: %[[B:.*]] = arith.addi %[[FIRST]], %c1
// CHECK: call @layer(%{{.*}}, %[[STATE]], %[[B]])
func.func private @layer(%x: tensor<8x16xbf16>) {
  %0 = fp8.quantize %x recipe(#fp8.delayed) {fp8.name = "x"} : tensor<8x16xbf16> -> !q
  return
}
func.func private @block(%x: tensor<8x16xbf16>) {
  call @layer(%x) {fp8.name = "a"} : (tensor<8x16xbf16>) -> ()
  call @layer(%x) {fp8.name = "b"} : (tensor<8x16xbf16>) -> ()
  return
}
func.func @model(%x: tensor<8x16xbf16>) {
  call @block(%x) {fp8.name = "b0"} : (tensor<8x16xbf16>) -> ()
  call @block(%x) {fp8.name = "b1"} : (tensor<8x16xbf16>) -> ()
  return
}

// -----

!q = !fp8.scaled<8x16xf8E4M3FN, block = [*, *], scale = f32>

// One set of slots for all calls.
// CHECK: [#fp8.slot<"tied.x" : f8E4M3FN, fprop activation>]
// CHECK-LABEL: func.func private @tied(
// CHECK-SAME: %[[STATE:[a-z0-9]+]]: !fp8.state)
// CHECK: fp8.read_scale %[[STATE]][%c0{{[_0-9]*}}]
// CHECK-LABEL: func.func @shared(
// CHECK-COUNT-2: call @tied(%{{.*}}, %{{.*}}) : (tensor<8x16xbf16>, !fp8.state) -> ()
func.func private @tied(%x: tensor<8x16xbf16>) attributes {fp8.slots = "shared"} {
  %0 = fp8.quantize %x recipe(#fp8.delayed) {fp8.name = "x"} : tensor<8x16xbf16> -> !q
  return
}
func.func @shared(%x: tensor<8x16xbf16>) {
  call @tied(%x) : (tensor<8x16xbf16>) -> ()
  call @tied(%x) : (tensor<8x16xbf16>) -> ()
  return
}

// -----

!q = !fp8.scaled<8x16xf8E4M3FN, block = [*, *], scale = f32>

// Public functions share slots of the same name; a public one that is called
// keeps its own.
// CHECK: [#fp8.slot<"x" : f8E4M3FN, fprop activation>, #fp8.slot<"y" : f8E4M3FN, fprop activation>]
// CHECK-LABEL: func.func @train(
// CHECK: fp8.read_scale %{{.*}}[%c0{{[_0-9]*}}]
// CHECK-LABEL: func.func @eval(
// CHECK: fp8.read_scale %{{.*}}[%c1{{[_0-9]*}}]
// CHECK: fp8.read_scale %{{.*}}[%c0{{[_0-9]*}}]
// CHECK-LABEL: func.func @both(
// CHECK-SAME: %[[STATE:[a-z0-9]+]]: !fp8.state)
// CHECK: call @train(%{{.*}}, %[[STATE]])
func.func @train(%x: tensor<8x16xbf16>) {
  %0 = fp8.quantize %x recipe(#fp8.delayed) {fp8.name = "x"} : tensor<8x16xbf16> -> !q
  return
}
func.func @eval(%x: tensor<8x16xbf16>) {
  %1 = fp8.quantize %x recipe(#fp8.delayed) {fp8.name = "y"} : tensor<8x16xbf16> -> !q
  %0 = fp8.quantize %x recipe(#fp8.delayed) {fp8.name = "x"} : tensor<8x16xbf16> -> !q
  return
}
func.func @both(%x: tensor<8x16xbf16>) {
  call @train(%x) : (tensor<8x16xbf16>) -> ()
  return
}

// -----

!q = !fp8.scaled<8x16xf8E4M3FN, block = [*, *], scale = f32>

// Iterations share their slots; branches have their own.
// CHECK: [#fp8.slot<"x" : {{.*}}#fp8.slot<"then" : {{.*}}#fp8.slot<"else" :
// CHECK-LABEL: func.func @iterations(
// CHECK: scf.for
// CHECK: fp8.read_scale %{{.*}}[%c0{{[_0-9]*}}]
// CHECK: scf.if
// CHECK: fp8.read_scale %{{.*}}[%c1{{[_0-9]*}}]
// CHECK: fp8.read_scale %{{.*}}[%c2{{[_0-9]*}}]
func.func @iterations(%x: tensor<8x16xbf16>, %n: index, %c: i1) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    %0 = fp8.quantize %x recipe(#fp8.delayed) {fp8.name = "x"} : tensor<8x16xbf16> -> !q
  }
  scf.if %c {
    %0 = fp8.quantize %x recipe(#fp8.delayed) {fp8.name = "then"} : tensor<8x16xbf16> -> !q
  } else {
    %0 = fp8.quantize %x recipe(#fp8.delayed) {fp8.name = "else"} : tensor<8x16xbf16> -> !q
  }
  return
}

// -----

!q = !fp8.scaled<8x16xf8E4M3FN, block = [*, *], scale = f32>

// Layers in a loop, each with its own slots, inside a function with two calls.
// CHECK: [#fp8.slot<"a.layers.0.x" : {{.*}}#fp8.slot<"a.layers.0.y" : {{.*}}#fp8.slot<"a.layers.1.x" : {{.*}}#fp8.slot<"a.layers.1.y" : {{.*}}#fp8.slot<"b.layers.0.x" :
// CHECK-LABEL: func.func private @stack(
// CHECK-SAME: %[[STATE:[a-z0-9]+]]: !fp8.state, %[[FIRST:[a-z0-9]+]]: index)
// CHECK: %[[LOOP:.*]] = arith.addi %[[FIRST]], %c0
// CHECK: scf.for %[[I:.*]] = %[[LB:.*]] to %{{.*}} step %[[STEP:.*]] {
// CHECK: %[[DISTANCE:.*]] = arith.subi %[[I]], %[[LB]]
// CHECK: %[[ITERATION:.*]] = arith.divui %[[DISTANCE]], %[[STEP]]
// CHECK: %[[OFFSET:.*]] = arith.muli %[[ITERATION]], %c2
// CHECK: %[[BODY:.*]] = arith.addi %[[LOOP]], %[[OFFSET]]
// CHECK: %[[X:.*]] = arith.addi %[[BODY]], %c0
// CHECK: fp8.read_scale %[[STATE]][%[[X]]]
// CHECK: %[[Y:.*]] = arith.addi %[[BODY]], %c1
// CHECK: fp8.read_scale %[[STATE]][%[[Y]]]
func.func private @stack(%x: tensor<8x16xbf16>) {
  %lb = arith.constant 3 : index
  %ub = arith.constant 7 : index
  %step = arith.constant 2 : index
  scf.for %i = %lb to %ub step %step {
    %0 = fp8.quantize %x recipe(#fp8.delayed) {fp8.name = "x"} : tensor<8x16xbf16> -> !q
    %1 = fp8.quantize %x recipe(#fp8.delayed) {fp8.name = "y"} : tensor<8x16xbf16> -> !q
  } {fp8.slots = "separate", fp8.name = "layers"}
  return
}
func.func @stacks(%x: tensor<8x16xbf16>) {
  call @stack(%x) {fp8.name = "a"} : (tensor<8x16xbf16>) -> ()
  call @stack(%x) {fp8.name = "b"} : (tensor<8x16xbf16>) -> ()
  return
}

// -----

!q = !fp8.scaled<8x16xf8E4M3FN, block = [*, *], scale = f32>

// The repeated forward uses the slots of the first.
// CHECK: [#fp8.slot<"l0.x" : f8E4M3FN, fprop activation>]
// CHECK-LABEL: func.func @recompute_call(
// CHECK-COUNT-2: call @layer(%{{.*}}, %{{.*}}, %c0{{.*}})
func.func private @layer(%x: tensor<8x16xbf16>) {
  %0 = fp8.quantize %x recipe(#fp8.delayed) {fp8.name = "x"} : tensor<8x16xbf16> -> !q
  return
}
func.func @recompute_call(%x: tensor<8x16xbf16>) {
  call @layer(%x) {fp8.name = "l0"} : (tensor<8x16xbf16>) -> ()
  call @layer(%x) {fp8.name = "l0", fp8.recompute} : (tensor<8x16xbf16>) -> ()
  return
}

// -----

!q = !fp8.scaled<8x16xf8E4M3FN, block = [*, *], scale = f32>

// A function without slots hands the state on.
// CHECK: [#fp8.slot<"tied.x" : f8E4M3FN, fprop activation>]
// CHECK-LABEL: func.func private @between(
// CHECK-SAME: %{{[a-z0-9]+}}: tensor<8x16xbf16>, %[[STATE:[a-z0-9]+]]: !fp8.state)
// CHECK: call @tied(%{{.*}}, %[[STATE]]) : (tensor<8x16xbf16>, !fp8.state) -> ()
// CHECK-LABEL: func.func @outermost(
// CHECK: call @between(%{{.*}}, %{{.*}}) : (tensor<8x16xbf16>, !fp8.state) -> ()
func.func private @tied(%x: tensor<8x16xbf16>) attributes {fp8.slots = "shared"} {
  %0 = fp8.quantize %x recipe(#fp8.delayed) {fp8.name = "x"} : tensor<8x16xbf16> -> !q
  return
}
func.func private @between(%x: tensor<8x16xbf16>) {
  call @tied(%x) : (tensor<8x16xbf16>) -> ()
  return
}
func.func @outermost(%x: tensor<8x16xbf16>) {
  call @between(%x) : (tensor<8x16xbf16>) -> ()
  return
}
