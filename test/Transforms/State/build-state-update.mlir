// RUN: fp8-opt %s --fp8-build-state-update --split-input-file | FileCheck %s
// RUN: fp8-opt %s --fp8-build-state-update --fp8-build-state-update --split-input-file | FileCheck %s

#table = #fp8.state_table<#fp8.delayed<amax_history_len = 16>, [#fp8.slot<"l0.x" : f8E4M3FN, fprop activation>]>

// CHECK: module attributes {{.*}}fp8.state_update = @fp8_update_state
// CHECK: func.func @f(
// CHECK: func.func @fp8_update_state(%[[STATE:.*]]: !fp8.state) attributes {fp8.state_uses = {f = array<i64>}, llvm.emit_c_interface}
// CHECK-NEXT: fp8.update_state %[[STATE]] table(<#fp8.delayed<amax_history_len = 16>, [#fp8.slot<"l0.x" : f8E4M3FN, fprop activation>]>)
// CHECK-NEXT: return
// CHECK-NOT: fp8.update_state
module attributes {fp8.state = #table} {
  func.func @f(%state: !fp8.state) {
    return
  }
}

// -----

#table = #fp8.state_table<#fp8.delayed, [#fp8.slot<"l0.x" : f8E4M3FN, fprop activation>]>

// A function of the program keeps its name.
// CHECK: module attributes {{.*}}fp8.state_update = @fp8_update_state_0
// CHECK: func.func @fp8_update_state(%{{.*}}: f32)
// CHECK: func.func @fp8_update_state_0(%{{.*}}: !fp8.state)
module attributes {fp8.state = #table} {
  func.func @fp8_update_state(%x: f32) {
    return
  }
}

// -----

#table = #fp8.state_table<#fp8.delayed, [#fp8.slot<"x" : f8E4M3FN, fprop activation>, #fp8.slot<"w" : f8E4M3FN, fprop weight>, #fp8.slot<"dy" : f8E5M2, dgrad gradient>]>

// What functions record, of those of which it is plain.
// CHECK: fp8.state_uses = {backward = array<i64: 2>, forward = array<i64: 0, 1>}
module attributes {fp8.state = #table} {
  func.func @forward(%x: tensor<1x1xf32>, %first: i1, %state: !fp8.state) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    fp8.record_amax %x, %state[%c1] : tensor<1x1xf32>
    scf.if %first {
      fp8.record_amax %x, %state[%c0] : tensor<1x1xf32>
    }
    %scale, %scale_inv = fp8.read_scale %state[%c2] : tensor<1x1xf32>
    fp8.record_amax %x, %state[%c1] : tensor<1x1xf32>
    return
  }
  func.func @backward(%x: tensor<1x1xf32>, %state: !fp8.state) {
    %c2 = arith.constant 2 : index
    fp8.record_amax %x, %state[%c2] : tensor<1x1xf32>
    return
  }
  func.func @by_iteration(%x: tensor<1x1xf32>, %state: !fp8.state) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c3 = arith.constant 3 : index
    scf.for %i = %c0 to %c3 step %c1 {
      fp8.record_amax %x, %state[%i] : tensor<1x1xf32>
    }
    return
  }
  func.func @calls(%x: tensor<1x1xf32>, %state: !fp8.state) {
    func.call @backward(%x, %state) : (tensor<1x1xf32>, !fp8.state) -> ()
    return
  }
  func.func @without_state(%x: tensor<1x1xf32>) {
    return
  }
}

// -----

#table = #fp8.state_table<#fp8.delayed, [#fp8.slot<"l0.x" : f8E4M3FN, fprop activation>]>

// Somebody has erased it.
// CHECK: module attributes {{.*}}fp8.state_update = @fp8_update_state
// CHECK: func.func @fp8_update_state(
module attributes {fp8.state = #table, fp8.state_update = @gone} {
}

// -----

// Neither a program without a state nor one whose state is known has any.
// CHECK: module {
// CHECK-NOT: func.func
module {
}

// -----

// CHECK: module attributes
// CHECK-NOT: fp8.state_update
module attributes {fp8.state = #fp8.state_table<#fp8.static<state = "m">, [#fp8.slot<"l0.x" : f8E4M3FN, fprop activation>]>} {
}
