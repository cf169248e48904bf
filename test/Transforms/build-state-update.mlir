// RUN: fp8-opt %s --fp8-build-state-update --split-input-file | FileCheck %s
// RUN: fp8-opt %s --fp8-build-state-update --fp8-build-state-update --split-input-file | FileCheck %s

#table = #fp8.state_table<#fp8.delayed<amax_history_len = 16>, [#fp8.slot<"l0.x" : f8E4M3FN, fprop activation>]>

// CHECK: module attributes {{.*}}fp8.state_update = @fp8_update_state
// CHECK: func.func @f(
// CHECK: func.func @fp8_update_state(%[[STATE:.*]]: !fp8.state) attributes {llvm.emit_c_interface}
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
