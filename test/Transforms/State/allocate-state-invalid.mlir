// RUN: fp8-opt %s --split-input-file --fp8-allocate-state --verify-diagnostics

!q = !fp8.scaled<8x16xf8E4M3FN, block = [*, *], scale = f32>

func.func @two_recipes(%x: tensor<8x16xbf16>) {
  // expected-note @below {{the other one is here}}
  %0 = fp8.quantize %x recipe(#fp8.delayed) : tensor<8x16xbf16> -> !q
  // expected-error @below {{'fp8.quantize' op expected one recipe for all scaling state of the module, but got #fp8.delayed<margin = 2> and #fp8.delayed}}
  %1 = fp8.quantize %x recipe(#fp8.delayed<margin = 2>) : tensor<8x16xbf16> -> !q
  return
}

// -----

!q = !fp8.scaled<8x16xf8E4M3FN, block = [*, *], scale = f32>

func.func @one_name(%x: tensor<8x16xbf16>, %y: tensor<8x16xbf16>) {
  // expected-note @below {{the first one is here}}
  %0 = fp8.quantize %x recipe(#fp8.delayed) {fp8.name = "x"} : tensor<8x16xbf16> -> !q
  // expected-error @below {{'fp8.quantize' op expected one tensor for slot 'x', but got another one; give each contraction a fp8.name of its own, or mark one that repeats a forward as fp8.recompute}}
  %1 = fp8.quantize %y recipe(#fp8.delayed) {fp8.name = "x"} : tensor<8x16xbf16> -> !q
  return
}

// -----

!q = !fp8.scaled<8x16xf8E4M3FN, block = [*, *], scale = f32>

func.func private @layer(%x: tensor<8x16xbf16>) {
  %0 = fp8.quantize %x recipe(#fp8.delayed) : tensor<8x16xbf16> -> !q
  return
}
func.func @one_call_name(%x: tensor<8x16xbf16>) {
  // expected-note @below {{the first one is here}}
  call @layer(%x) {fp8.name = "l0"} : (tensor<8x16xbf16>) -> ()
  // expected-error @below {{'func.call' op expected one call with the name 'l0', but got another one; mark one that repeats a forward as fp8.recompute}}
  call @layer(%x) {fp8.name = "l0"} : (tensor<8x16xbf16>) -> ()
  return
}

// -----

!q = !fp8.scaled<8x16xf8E4M3FN, block = [*, *], scale = f32>

func.func private @layer(%x: tensor<8x16xbf16>) {
  %0 = fp8.quantize %x recipe(#fp8.delayed) {fp8.name = "x"} : tensor<8x16xbf16> -> !q
  return
}
func.func @dotted(%x: tensor<8x16xbf16>) {
  // expected-note @below {{the first one is here}}
  %0 = fp8.quantize %x recipe(#fp8.delayed) {fp8.name = "l0.x"} : tensor<8x16xbf16> -> !q
  // expected-error @below {{'func.call' op expected one tensor for slot 'l0.x', but got another one}}
  call @layer(%x) {fp8.name = "l0"} : (tensor<8x16xbf16>) -> ()
  return
}

// -----

!q = !fp8.scaled<8x16xf8E4M3FN, block = [*, *], scale = f32>

func.func private @again(%x: tensor<8x16xbf16>) {
  %0 = fp8.quantize %x recipe(#fp8.delayed) : tensor<8x16xbf16> -> !q
  // expected-error @below {{'func.call' op expected no recursion among functions with scaling state, but 'again' calls itself}}
  call @again(%x) : (tensor<8x16xbf16>) -> ()
  return
}

// -----

// Recursion without state is none of its business.
func.func private @again(%x: tensor<8x16xbf16>) {
  call @again(%x) : (tensor<8x16xbf16>) -> ()
  return
}

// -----

!q = !fp8.scaled<8x16xf8E4M3FN, block = [*, *], scale = f32>

func.func @unknown_trip_count(%x: tensor<8x16xbf16>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // expected-error @below {{'scf.for' op expected constant bounds and step and at least one iteration, since each has slots of its own}}
  scf.for %i = %c0 to %n step %c1 {
    %0 = fp8.quantize %x recipe(#fp8.delayed) : tensor<8x16xbf16> -> !q
  } {fp8.slots = "separate"}
  return
}

// -----

func.func @not_per_tensor(%x: tensor<8x16xbf16>) {
  // expected-error @below {{'fp8.quantize' op expected a recipe with state to have one f32 scale for the tensor, but got '!fp8.scaled<8x16xf8E4M3FN, block = [1, *], scale = f32>'}}
  %0 = fp8.quantize %x recipe(#fp8.delayed) : tensor<8x16xbf16> -> !fp8.scaled<8x16xf8E4M3FN, block = [1, *], scale = f32>
  return
}

// -----

!q = !fp8.scaled<8x16xf8E4M3FN, block = [*, *], scale = f32>

func.func private @indirect(%x: tensor<8x16xbf16>) {
  %0 = fp8.quantize %x recipe(#fp8.delayed) : tensor<8x16xbf16> -> !q
  return
}
func.func @caller() -> ((tensor<8x16xbf16>) -> ()) {
  // expected-error @below {{'func.constant' op expected 'indirect', which uses scaling state, to be called directly}}
  %0 = func.constant @indirect : (tensor<8x16xbf16>) -> ()
  return %0 : (tensor<8x16xbf16>) -> ()
}

// -----

// expected-note @below {{the other function}}
func.func @first(%x: tensor<8x16xbf16>) {
  %0 = fp8.quantize %x recipe(#fp8.delayed) {fp8.name = "x"} : tensor<8x16xbf16> -> !fp8.scaled<8x16xf8E4M3FN, block = [*, *], scale = f32>
  return
}
// expected-error @below {{expected slot 'x' to have one format, but got 'f8E5M2' here and 'f8E4M3FN' in another function}}
func.func @second(%x: tensor<8x16xbf16>) {
  %0 = fp8.quantize %x recipe(#fp8.delayed) {fp8.name = "x"} : tensor<8x16xbf16> -> !fp8.scaled<8x16xf8E5M2, block = [*, *], scale = f32>
  return
}

// -----

!q = !fp8.scaled<8x16xf8E4M3FN, block = [*, *], scale = f32>

func.func private @layer(%x: tensor<8x16xbf16>) {
  %0 = fp8.quantize %x recipe(#fp8.delayed) {fp8.name = "x"} : tensor<8x16xbf16> -> !q
  %1 = fp8.quantize %x recipe(#fp8.delayed) {fp8.name = "y"} : tensor<8x16xbf16> -> !q
  return
}
func.func @first(%x: tensor<8x16xbf16>) {
  %0 = fp8.quantize %x recipe(#fp8.delayed) {fp8.name = "l0.y"} : tensor<8x16xbf16> -> !q
  return
}
func.func @second(%x: tensor<8x16xbf16>) {
  // expected-error @below {{'func.call' op expected its slots to lie together, but another function has 'l0.y' in another order; give them other names}}
  call @layer(%x) {fp8.name = "l0"} : (tensor<8x16xbf16>) -> ()
  return
}

// -----

// expected-error @below {{expected no quantize whose recipe has state in a module that has 'fp8.state' already}}
module attributes {fp8.state = #fp8.state_table<#fp8.delayed, []>} {
  func.func @twice(%x: tensor<8x16xbf16>) {
    %0 = fp8.quantize %x recipe(#fp8.delayed) : tensor<8x16xbf16> -> !fp8.scaled<8x16xf8E4M3FN, block = [*, *], scale = f32>
    return
  }
}
