// RUN: fp8-opt %s --split-input-file --verify-diagnostics

func.func @all_reduce_amax_c1(%amax: tensor<1x1xf32>) {
  // expected-error @+1 {{expected group to have a name, but got ""}}
  %0 = fp8.all_reduce_amax %amax group = "" : tensor<1x1xf32>
  return
}

// -----

func.func @all_reduce_amax_c1(%amax: tensor<1x1xf32>) {
  // expected-error @+1 {{expected the name of group to have no NUL}}
  %0 = fp8.all_reduce_amax %amax group = "a\00b" : tensor<1x1xf32>
  return
}

// -----

func.func @all_reduce_amax_c2(%amax: tensor<1x1xf32>) {
  // expected-error @+1 {{expected size to be at least 1, but got 0}}
  %0 = fp8.all_reduce_amax %amax group = "tp" size = 0 : tensor<1x1xf32>
  return
}

// -----

func.func @all_reduce_amax_c3(%amax: tensor<1x1xf32>) {
  // expected-error @+1 {{expected a memref with first_call, but got 'tensor<1x1xf32>'}}
  %0 = fp8.all_reduce_amax %amax group = "tp" first_call : tensor<1x1xf32>
  return
}

// -----

func.func @type(%amax: tensor<1x1xbf16>) {
  // expected-error @+1 {{operand #0 must be}}
  %0 = fp8.all_reduce_amax %amax group = "tp" : tensor<1x1xbf16>
  return
}

// -----

func.func @all_reduce_state_c1(%state: !fp8.state) {
  // expected-error @+1 {{expected group to have a name, but got ""}}
  fp8.all_reduce_state %state group = ""
  return
}

// -----

// expected-error @+1 {{expected 'fp8.amax_group' to be the name of a group, but got ""}}
func.func @attribute() attributes {fp8.amax_group = ""} {
  return
}

// -----

// expected-error @+1 {{expected 'fp8.amax_group' to be the name of a group, but got 2 : i64}}
module attributes {fp8.amax_group = 2} {}
