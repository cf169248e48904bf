// RUN: fp8-opt %s --split-input-file --verify-diagnostics

func.func @c1_rank(%grad: tensor<16x4x64xbf16>, %q: tensor<1x16x4x64xbf16>, %k: tensor<1x16x4x64xbf16>, %v: tensor<1x16x4x64xbf16>, %lse: tensor<1x4x16xf32>, %delta: tensor<1x4x16xf32>) {
  // expected-error @below {{expected grad to have rank 4, but got 'tensor<16x4x64xbf16>'}}
  %0:3 = fp8.attention_backward %grad, %q, %k, %v, %lse, %delta scale = 1.0 : tensor<16x4x64xbf16>, tensor<1x16x4x64xbf16>, tensor<1x16x4x64xbf16>, tensor<1x16x4x64xbf16>, tensor<1x4x16xf32>, tensor<1x4x16xf32> -> tensor<1x16x4x64xbf16>, tensor<1x16x4x64xbf16>, tensor<1x16x4x64xbf16>
  return
}

// -----

func.func @c1_grad(%grad: tensor<1x16x4x64xbf16>, %q: tensor<1x16x4x64xbf16>, %k: tensor<1x16x4x64xbf16>, %v: tensor<1x16x4x32xbf16>, %lse: tensor<1x4x16xf32>, %delta: tensor<1x4x16xf32>) {
  // expected-error @below {{expected grad to have shape 'tensor<1x16x4x32xbf16>', but got 'tensor<1x16x4x64xbf16>'}}
  %0:3 = fp8.attention_backward %grad, %q, %k, %v, %lse, %delta scale = 1.0 : tensor<1x16x4x64xbf16>, tensor<1x16x4x64xbf16>, tensor<1x16x4x64xbf16>, tensor<1x16x4x32xbf16>, tensor<1x4x16xf32>, tensor<1x4x16xf32> -> tensor<1x16x4x64xbf16>, tensor<1x16x4x64xbf16>, tensor<1x16x4x32xbf16>
  return
}

// -----

func.func @c1_groups(%grad: tensor<1x16x4x64xbf16>, %q: tensor<1x16x4x64xbf16>, %k: tensor<1x16x3x64xbf16>, %v: tensor<1x16x3x64xbf16>, %lse: tensor<1x4x16xf32>, %delta: tensor<1x4x16xf32>) {
  // expected-error @below {{expected the number of heads of q to be a multiple of that of k, but got 4 and 3}}
  %0:3 = fp8.attention_backward %grad, %q, %k, %v, %lse, %delta scale = 1.0 : tensor<1x16x4x64xbf16>, tensor<1x16x4x64xbf16>, tensor<1x16x3x64xbf16>, tensor<1x16x3x64xbf16>, tensor<1x4x16xf32>, tensor<1x4x16xf32> -> tensor<1x16x4x64xbf16>, tensor<1x16x3x64xbf16>, tensor<1x16x3x64xbf16>
  return
}

// -----

func.func @c2_types(%grad: tensor<1x16x4x64xbf16>, %q: tensor<1x16x4x64xbf16>, %k: tensor<1x16x4x64xf16>, %v: tensor<1x16x4x64xbf16>, %lse: tensor<1x4x16xf32>, %delta: tensor<1x4x16xf32>) {
  // expected-error @below {{expected q and k to be scaled, or tensors of one element type, but got 'tensor<1x16x4x64xbf16>' and 'tensor<1x16x4x64xf16>'}}
  %0:3 = fp8.attention_backward %grad, %q, %k, %v, %lse, %delta scale = 1.0 : tensor<1x16x4x64xbf16>, tensor<1x16x4x64xbf16>, tensor<1x16x4x64xf16>, tensor<1x16x4x64xbf16>, tensor<1x4x16xf32>, tensor<1x4x16xf32> -> tensor<1x16x4x64xbf16>, tensor<1x16x4x64xf16>, tensor<1x16x4x64xbf16>
  return
}

// -----

func.func @c3_factors(%grad: tensor<1x16x4x64xbf16>, %q: !fp8.scaled<1x16x4x64xf8E4M3FN, block = [1, 1, 1, *], scale = f32>, %k: !fp8.scaled<1x16x4x64xf8E4M3FN, block = [1, 1, 1, *], scale = f32>, %v: !fp8.scaled<1x16x4x64xf8E4M3FN, block = [1, 1, 1, *], scale = f32>, %lse: tensor<1x4x16xf32>, %delta: tensor<1x4x16xf32>) {
  // expected-error @below {{expected q to have an f32 factor for the tensor, or for each head of each batch, but got '!fp8.scaled<1x16x4x64xf8E4M3FN, block = [1, 1, 1, *], scale = f32>'}}
  %0:3 = fp8.attention_backward %grad, %q, %k, %v, %lse, %delta scale = 1.0 : tensor<1x16x4x64xbf16>, !fp8.scaled<1x16x4x64xf8E4M3FN, block = [1, 1, 1, *], scale = f32>, !fp8.scaled<1x16x4x64xf8E4M3FN, block = [1, 1, 1, *], scale = f32>, !fp8.scaled<1x16x4x64xf8E4M3FN, block = [1, 1, 1, *], scale = f32>, tensor<1x4x16xf32>, tensor<1x4x16xf32> -> tensor<1x16x4x64xbf16>, tensor<1x16x4x64xbf16>, tensor<1x16x4x64xbf16>
  return
}

// -----

func.func @c4_scale(%grad: tensor<1x16x4x64xbf16>, %q: tensor<1x16x4x64xbf16>, %k: tensor<1x16x4x64xbf16>, %v: tensor<1x16x4x64xbf16>, %lse: tensor<1x4x16xf32>, %delta: tensor<1x4x16xf32>) {
  // expected-error @below {{expected scale to be finite and positive, but got 0.000000e+00 : f32}}
  %0:3 = fp8.attention_backward %grad, %q, %k, %v, %lse, %delta scale = 0.0 : tensor<1x16x4x64xbf16>, tensor<1x16x4x64xbf16>, tensor<1x16x4x64xbf16>, tensor<1x16x4x64xbf16>, tensor<1x4x16xf32>, tensor<1x4x16xf32> -> tensor<1x16x4x64xbf16>, tensor<1x16x4x64xbf16>, tensor<1x16x4x64xbf16>
  return
}

// -----

func.func @c5_window(%grad: tensor<1x16x4x64xbf16>, %q: tensor<1x16x4x64xbf16>, %k: tensor<1x16x4x64xbf16>, %v: tensor<1x16x4x64xbf16>, %lse: tensor<1x4x16xf32>, %delta: tensor<1x4x16xf32>) {
  // expected-error @below {{expected window to have two entries, each at least 0 or '*', but got array<i64: 1>}}
  %0:3 = fp8.attention_backward %grad, %q, %k, %v, %lse, %delta scale = 1.0 window = [1] : tensor<1x16x4x64xbf16>, tensor<1x16x4x64xbf16>, tensor<1x16x4x64xbf16>, tensor<1x16x4x64xbf16>, tensor<1x4x16xf32>, tensor<1x4x16xf32> -> tensor<1x16x4x64xbf16>, tensor<1x16x4x64xbf16>, tensor<1x16x4x64xbf16>
  return
}

// -----

func.func @c6_lse(%grad: tensor<1x16x4x64xbf16>, %q: tensor<1x16x4x64xbf16>, %k: tensor<1x16x4x64xbf16>, %v: tensor<1x16x4x64xbf16>, %lse: tensor<1x16x4xf32>, %delta: tensor<1x4x16xf32>) {
  // expected-error @below {{expected lse to have shape 'tensor<1x4x16xf32>', but got 'tensor<1x16x4xf32>'}}
  %0:3 = fp8.attention_backward %grad, %q, %k, %v, %lse, %delta scale = 1.0 : tensor<1x16x4x64xbf16>, tensor<1x16x4x64xbf16>, tensor<1x16x4x64xbf16>, tensor<1x16x4x64xbf16>, tensor<1x16x4xf32>, tensor<1x4x16xf32> -> tensor<1x16x4x64xbf16>, tensor<1x16x4x64xbf16>, tensor<1x16x4x64xbf16>
  return
}

// -----

func.func @c6_delta(%grad: tensor<1x16x4x64xbf16>, %q: tensor<1x16x4x64xbf16>, %k: tensor<1x16x4x64xbf16>, %v: tensor<1x16x4x64xbf16>, %lse: tensor<1x4x16xf32>, %delta: tensor<1x4xf32>) {
  // expected-error @below {{expected delta to have shape 'tensor<1x4x16xf32>', but got 'tensor<1x4xf32>'}}
  %0:3 = fp8.attention_backward %grad, %q, %k, %v, %lse, %delta scale = 1.0 : tensor<1x16x4x64xbf16>, tensor<1x16x4x64xbf16>, tensor<1x16x4x64xbf16>, tensor<1x16x4x64xbf16>, tensor<1x4x16xf32>, tensor<1x4xf32> -> tensor<1x16x4x64xbf16>, tensor<1x16x4x64xbf16>, tensor<1x16x4x64xbf16>
  return
}

// -----

func.func @c7_shape(%grad: tensor<1x16x4x64xbf16>, %q: tensor<1x16x4x64xbf16>, %k: tensor<1x16x4x64xbf16>, %v: tensor<1x16x4x64xbf16>, %lse: tensor<1x4x16xf32>, %delta: tensor<1x4x16xf32>) {
  // expected-error @below {{expected the gradient of k to be 'tensor<1x16x4x64xbf16>', but got 'tensor<1x17x4x64xbf16>'}}
  %0:3 = fp8.attention_backward %grad, %q, %k, %v, %lse, %delta scale = 1.0 : tensor<1x16x4x64xbf16>, tensor<1x16x4x64xbf16>, tensor<1x16x4x64xbf16>, tensor<1x16x4x64xbf16>, tensor<1x4x16xf32>, tensor<1x4x16xf32> -> tensor<1x16x4x64xbf16>, tensor<1x17x4x64xbf16>, tensor<1x16x4x64xbf16>
  return
}

// -----

func.func @c7_type(%grad: tensor<1x16x4x64xbf16>, %q: tensor<1x16x4x64xbf16>, %k: tensor<1x16x4x64xbf16>, %v: tensor<1x16x4x64xbf16>, %lse: tensor<1x4x16xf32>, %delta: tensor<1x4x16xf32>) {
  // expected-error @below {{expected the gradient of q to be 'tensor<1x16x4x64xbf16>', but got 'tensor<1x16x4x64xf16>'}}
  %0:3 = fp8.attention_backward %grad, %q, %k, %v, %lse, %delta scale = 1.0 : tensor<1x16x4x64xbf16>, tensor<1x16x4x64xbf16>, tensor<1x16x4x64xbf16>, tensor<1x16x4x64xbf16>, tensor<1x4x16xf32>, tensor<1x4x16xf32> -> tensor<1x16x4x64xf16>, tensor<1x16x4x64xbf16>, tensor<1x16x4x64xbf16>
  return
}

// -----

func.func @c7_operand(%grad: tensor<1x16x4x64xbf16>, %q: tensor<1x16x4x64xf16>, %k: tensor<1x16x4x64xf16>, %v: tensor<1x16x4x64xf16>, %lse: tensor<1x4x16xf32>, %delta: tensor<1x4x16xf32>) {
  // expected-error @below {{expected q to have the element type of grad, 'bf16', but got 'tensor<1x16x4x64xf16>'}}
  %0:3 = fp8.attention_backward %grad, %q, %k, %v, %lse, %delta scale = 1.0 : tensor<1x16x4x64xbf16>, tensor<1x16x4x64xf16>, tensor<1x16x4x64xf16>, tensor<1x16x4x64xf16>, tensor<1x4x16xf32>, tensor<1x4x16xf32> -> tensor<1x16x4x64xbf16>, tensor<1x16x4x64xbf16>, tensor<1x16x4x64xbf16>
  return
}

// -----

func.func @order(%q: tensor<1x16x4x64xbf16>, %rows: tensor<1x4x16xf32>) {
  // expected-error @below {{expected order to be deterministic or any}}
  %0:3 = fp8.attention_backward %q, %q, %q, %q, %rows, %rows scale = 1.0 order = fast : tensor<1x16x4x64xbf16>, tensor<1x16x4x64xbf16>, tensor<1x16x4x64xbf16>, tensor<1x16x4x64xbf16>, tensor<1x4x16xf32>, tensor<1x4x16xf32> -> tensor<1x16x4x64xbf16>, tensor<1x16x4x64xbf16>, tensor<1x16x4x64xbf16>
  return
}

// -----

func.func @c8_ranges(%q: tensor<1x16x4x64xbf16>, %rows: tensor<1x4x16xf32>, %ranges: tensor<1x15x2xi32>) {
  // expected-error @below {{expected key_ranges to have shape 'tensor<1x16x2xi32>', but got 'tensor<1x15x2xi32>'}}
  %0:3 = fp8.attention_backward %q, %q, %q, %q, %rows, %rows key_ranges(%ranges : tensor<1x15x2xi32>) scale = 1.0 : tensor<1x16x4x64xbf16>, tensor<1x16x4x64xbf16>, tensor<1x16x4x64xbf16>, tensor<1x16x4x64xbf16>, tensor<1x4x16xf32>, tensor<1x4x16xf32> -> tensor<1x16x4x64xbf16>, tensor<1x16x4x64xbf16>, tensor<1x16x4x64xbf16>
  return
}

// -----

func.func @c9_cap(%q: tensor<1x16x4x64xbf16>, %rows: tensor<1x4x16xf32>) {
  // expected-error @below {{expected cap to be finite and positive, but got 0.000000e+00 : f32}}
  %0:3 = fp8.attention_backward %q, %q, %q, %q, %rows, %rows scale = 1.0 cap = 0.0 : tensor<1x16x4x64xbf16>, tensor<1x16x4x64xbf16>, tensor<1x16x4x64xbf16>, tensor<1x16x4x64xbf16>, tensor<1x4x16xf32>, tensor<1x4x16xf32> -> tensor<1x16x4x64xbf16>, tensor<1x16x4x64xbf16>, tensor<1x16x4x64xbf16>
  return
}

// -----

func.func @c10_rate(%q: tensor<1x16x4x64xbf16>, %rows: tensor<1x4x16xf32>, %state: tensor<2xi64>) {
  // expected-error @below {{expected a rate from 0 to 1 - 2^-16, but got 1.000000e+00 : f32}}
  %0:3 = fp8.attention_backward %q, %q, %q, %q, %rows, %rows dropout(%state : tensor<2xi64>) rate = 0.99999999 scale = 1.0 : tensor<1x16x4x64xbf16>, tensor<1x16x4x64xbf16>, tensor<1x16x4x64xbf16>, tensor<1x16x4x64xbf16>, tensor<1x4x16xf32>, tensor<1x4x16xf32> -> tensor<1x16x4x64xbf16>, tensor<1x16x4x64xbf16>, tensor<1x16x4x64xbf16>
  return
}

// -----

func.func @c10_dropout(%q: tensor<1x16x4x64xbf16>, %rows: tensor<1x4x16xf32>, %state: tensor<1xi64>) {
  // expected-error @below {{expected dropout to have shape 'tensor<2xi64>', but got 'tensor<1xi64>'}}
  %0:3 = fp8.attention_backward %q, %q, %q, %q, %rows, %rows dropout(%state : tensor<1xi64>) rate = 0.1 scale = 1.0 : tensor<1x16x4x64xbf16>, tensor<1x16x4x64xbf16>, tensor<1x16x4x64xbf16>, tensor<1x16x4x64xbf16>, tensor<1x4x16xf32>, tensor<1x4x16xf32> -> tensor<1x16x4x64xbf16>, tensor<1x16x4x64xbf16>, tensor<1x16x4x64xbf16>
  return
}
