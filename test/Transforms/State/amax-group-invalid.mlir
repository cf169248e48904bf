// RUN: fp8-opt %s --fp8-build-state-update --split-input-file --verify-diagnostics

#table = #fp8.state_table<#fp8.delayed, [#fp8.slot<"x" : f8E4M3FN, fprop activation>]>

// A step ends once, for all functions.
module attributes {fp8.state = #table} {
  func.func @first(%state: !fp8.state) attributes {fp8.amax_group = "dp"} {
    return
  }
  // expected-error @+1 {{expected all functions with a scaling state to have the same fp8.amax_group, but got none of 'second' and 'dp' of 'first'}}
  func.func @second(%state: !fp8.state) {
    return
  }
}

// -----

#table = #fp8.state_table<#fp8.delayed, [#fp8.slot<"x" : f8E4M3FN, fprop activation>]>

// Also for those that hosts do not call.
module attributes {fp8.state = #table} {
  func.func @main(%state: !fp8.state) {
    call @inner(%state) : (!fp8.state) -> ()
    return
  }
  // expected-error @+1 {{expected all functions with a scaling state to have the same fp8.amax_group, but got 'dp' of 'inner' and none of 'main'}}
  func.func private @inner(%state: !fp8.state) attributes {fp8.amax_group = "dp"} {
    return
  }
}
