// RUN: fp8-opt %s | fp8-opt | FileCheck %s
// RUN: fp8-opt %s --emit-bytecode | fp8-opt | FileCheck %s
// RUN: fp8-opt %s | not grep '[^ ]  '

// Defaults are not printed; every other value is, and parses back.

// CHECK-LABEL: @current
// CHECK-SAME: r0 = #fp8.current, r1 = #fp8.current<format = e4m3, pow2 = true, amax_epsilon = 9.99999996E-13, style = torchao, accumulate = fast>
func.func private @current() attributes {
  r0 = #fp8.current<format = hybrid>,
  r1 = #fp8.current<format = e4m3, pow2 = true, amax_epsilon = 1.0e-12, style = torchao, accumulate = fast>}

// CHECK-LABEL: @rowwise
// CHECK-SAME: r0 = #fp8.rowwise, r1 = #fp8.rowwise<format = hybrid, pow2 = false>
func.func private @rowwise() attributes {
  r0 = #fp8.rowwise<format = e4m3, pow2 = true>, r1 = #fp8.rowwise<format = hybrid, pow2 = false>}

// CHECK-LABEL: @block
// CHECK-SAME: r0 = #fp8.block, r1 = #fp8.block<x_dim = 2, w_dim = 1>
func.func private @block() attributes {r0 = #fp8.block, r1 = #fp8.block<x_dim = 2, w_dim = 1>}

// CHECK-LABEL: @mxfp8
// CHECK-SAME: r0 = #fp8.mxfp8, r1 = #fp8.mxfp8<mode = even, nonfinite = nan, weight_2d = true>
func.func private @mxfp8() attributes {
  r0 = #fp8.mxfp8<mode = rceil>, r1 = #fp8.mxfp8<mode = even, nonfinite = nan, weight_2d = true>}

// CHECK-LABEL: @nvfp4_none
// CHECK-SAME: r0 = #fp8.nvfp4<weight_2d = true>, r1 = #fp8.none
func.func private @nvfp4_none() attributes {r0 = #fp8.nvfp4<weight_2d = true>, r1 = #fp8.none}

// CHECK-LABEL: @nvfp4_training
// CHECK-SAME: r0 = #fp8.nvfp4<stochastic_rounding = true, hadamard = true>, r1 = #fp8.nvfp4
func.func private @nvfp4_training() attributes {
  r0 = #fp8.nvfp4<stochastic_rounding = true, hadamard = true>, r1 = #fp8.nvfp4<hadamard = false>}

// The seeds are a state of no format in particular.
// CHECK-LABEL: @nvfp4_state
// CHECK-SAME: t = #fp8.state_table<#fp8.nvfp4<stochastic_rounding = true>, [#fp8.slot<"l.dy" : f4E2M1FN, dgrad gradient>]>
func.func private @nvfp4_state() attributes {
  t = #fp8.state_table<#fp8.nvfp4<stochastic_rounding = true>, [#fp8.slot<"l.dy" : f4E2M1FN, dgrad gradient>]>}

// CHECK-LABEL: @delayed
// CHECK-SAME: r0 = #fp8.delayed, r1 = #fp8.delayed<amax_history_len = 16, amax_compute_algo = most_recent, margin = -2, compat = te_unfused, initial = current, accumulate = fast_fprop>
func.func private @delayed() attributes {
  r0 = #fp8.delayed,
  r1 = #fp8.delayed<amax_history_len = 16, amax_compute_algo = most_recent, margin = -2, compat = te_unfused, initial = current, accumulate = fast_fprop>}

// CHECK-LABEL: @discardable
// CHECK-SAME: {fp8.name = "x", fp8.weight}
// CHECK-SAME: fp8.recipe = #fp8.block
func.func private @discardable(tensor<1xf32> {fp8.name = "x", fp8.weight}) attributes {fp8.recipe = #fp8.block}

// CHECK-LABEL: @static
// CHECK-SAME: r0 = #fp8.static<state = "model.safetensors">, r1 = #fp8.static<state = "m", format = e4m3, accumulate = fast>
func.func private @static() attributes {
  r0 = #fp8.static<state = "model.safetensors">,
  r1 = #fp8.static<state = "m", format = e4m3, accumulate = fast>}
