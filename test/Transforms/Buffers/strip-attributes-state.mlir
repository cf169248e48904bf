// RUN: fp8-opt %s --fp8-strip-attributes --split-input-file --verify-diagnostics | FileCheck %s

// The table becomes what the runtime takes; the recipe has served.
// CHECK: module attributes {fp8.state_manifest = "{\22version\22:1,\22recipe\22:\22delayed\22,\22words\22:17,\22amax_history_len\22:16,{{.*}}\22slots\22:[{\22name\22:\22l0.x\22,\22format\22:\22e4m3\22,\22role\22:\22fprop\22,\22operand\22:\22activation\22}]}"}
module attributes {fp8.recipe = #fp8.delayed<amax_history_len = 16>, fp8.state = #fp8.state_table<#fp8.delayed<amax_history_len = 16>, [#fp8.slot<"l0.x" : f8E4M3FN, fprop activation>]>} {}

// -----

// As does what functions use of it.
// CHECK: module attributes {fp8.state_manifest = "{{.*}}\22uses\22:{\22f\22:[0],\22g\22:[]}}", fp8.state_update = @update} {
// CHECK: func.func @update(%{{.*}}: !fp8.state) {
module attributes {fp8.state = #fp8.state_table<#fp8.delayed, [#fp8.slot<"l0.x" : f8E4M3FN, fprop activation>]>, fp8.state_update = @update} {
  func.func @update(%state: !fp8.state) attributes {fp8.state_uses = {f = array<i64: 0>, g = array<i64>}} {
    return
  }
}

// -----

// expected-error @below {{expected the recipe of 'fp8.state' to learn from steps, but got #fp8.static<state = "model.safetensors">: run fp8-bind-scales first}}
module attributes {fp8.state = #fp8.state_table<#fp8.static<state = "model.safetensors">, []>} {}
