// RUN: fp8-opt %s --split-input-file --verify-diagnostics

func.func @c1_rank(%q: tensor<16x4x64xbf16>, %k: tensor<1x16x4x64xbf16>, %v: tensor<1x16x4x64xbf16>) {
  // expected-error @below {{expected q to have rank 4, but got 'tensor<16x4x64xbf16>'}}
  %0 = fp8.attention %q, %k, %v scale = 1.0 : tensor<16x4x64xbf16>, tensor<1x16x4x64xbf16>, tensor<1x16x4x64xbf16> -> tensor<1x16x4x64xbf16>
  return
}

// -----

func.func @c1_heads(%q: tensor<1x16x?x64xbf16>, %k: tensor<1x16x4x64xbf16>, %v: tensor<1x16x4x64xbf16>) {
  // expected-error @below {{expected q to have a static number of heads, but got 'tensor<1x16x?x64xbf16>'}}
  %0 = fp8.attention %q, %k, %v scale = 1.0 : tensor<1x16x?x64xbf16>, tensor<1x16x4x64xbf16>, tensor<1x16x4x64xbf16> -> tensor<1x16x4x64xbf16>
  return
}

// -----

func.func @c1_head_dim(%q: tensor<1x16x4x64xbf16>, %k: tensor<1x16x4x32xbf16>, %v: tensor<1x16x4x64xbf16>) {
  // expected-error @below {{expected q and k to agree in batches and head dimension, but got 'tensor<1x16x4x64xbf16>' and 'tensor<1x16x4x32xbf16>'}}
  %0 = fp8.attention %q, %k, %v scale = 1.0 : tensor<1x16x4x64xbf16>, tensor<1x16x4x32xbf16>, tensor<1x16x4x64xbf16> -> tensor<1x16x4x64xbf16>
  return
}

// -----

func.func @c1_keys(%q: tensor<1x16x4x64xbf16>, %k: tensor<1x16x4x64xbf16>, %v: tensor<1x17x4x64xbf16>) {
  // expected-error @below {{expected k and v to agree in all but the head dimension, but got 'tensor<1x16x4x64xbf16>' and 'tensor<1x17x4x64xbf16>'}}
  %0 = fp8.attention %q, %k, %v scale = 1.0 : tensor<1x16x4x64xbf16>, tensor<1x16x4x64xbf16>, tensor<1x17x4x64xbf16> -> tensor<1x16x4x64xbf16>
  return
}

// -----

func.func @c1_groups(%q: tensor<1x16x4x64xbf16>, %k: tensor<1x16x3x64xbf16>, %v: tensor<1x16x3x64xbf16>) {
  // expected-error @below {{expected the number of heads of q to be a multiple of that of k, but got 4 and 3}}
  %0 = fp8.attention %q, %k, %v scale = 1.0 : tensor<1x16x4x64xbf16>, tensor<1x16x3x64xbf16>, tensor<1x16x3x64xbf16> -> tensor<1x16x4x64xbf16>
  return
}

// -----

func.func @c1_result(%q: tensor<1x16x4x64xbf16>, %k: tensor<1x16x4x64xbf16>, %v: tensor<1x16x4x32xbf16>) {
  // expected-error @below {{expected result to have shape 'tensor<1x16x4x32xbf16>', but got 'tensor<1x16x4x64xbf16>'}}
  %0 = fp8.attention %q, %k, %v scale = 1.0 : tensor<1x16x4x64xbf16>, tensor<1x16x4x64xbf16>, tensor<1x16x4x32xbf16> -> tensor<1x16x4x64xbf16>
  return
}

// -----

func.func @c2_types(%q: tensor<1x16x4x64xbf16>, %k: tensor<1x16x4x64xf16>, %v: tensor<1x16x4x64xbf16>) {
  // expected-error @below {{expected q and k to be scaled, or tensors of one element type, but got 'tensor<1x16x4x64xbf16>' and 'tensor<1x16x4x64xf16>'}}
  %0 = fp8.attention %q, %k, %v scale = 1.0 : tensor<1x16x4x64xbf16>, tensor<1x16x4x64xf16>, tensor<1x16x4x64xbf16> -> tensor<1x16x4x64xbf16>
  return
}

// -----

func.func @c3_factors(%q: !fp8.scaled<1x16x4x64xf8E4M3FN, block = [1, *, 2, *], scale = f32>, %k: !fp8.scaled<1x16x4x64xf8E4M3FN, block = [1, *, 1, *], scale = f32>, %v: !fp8.scaled<1x16x4x64xf8E4M3FN, block = [1, *, 1, *], scale = f32>) {
  // expected-error @below {{expected q to have an f32 factor for the tensor, or for each head of each batch and each block of its positions, but got '!fp8.scaled<1x16x4x64xf8E4M3FN, block = [1, *, 2, *], scale = f32>'}}
  %0 = fp8.attention %q, %k, %v scale = 1.0 : !fp8.scaled<1x16x4x64xf8E4M3FN, block = [1, *, 2, *], scale = f32>, !fp8.scaled<1x16x4x64xf8E4M3FN, block = [1, *, 1, *], scale = f32>, !fp8.scaled<1x16x4x64xf8E4M3FN, block = [1, *, 1, *], scale = f32> -> tensor<1x16x4x64xbf16>
  return
}

// -----

// Blocks of columns are none of positions.

func.func @c3_columns(%q: !fp8.scaled<1x16x4x64xf8E4M3FN, block = [1, 8, 1, 32], scale = f32>, %k: !fp8.scaled<1x16x4x64xf8E4M3FN, block = [1, 8, 1, *], scale = f32>) {
  // expected-error @below {{expected q to have an f32 factor for the tensor, or for each head of each batch and each block of its positions, but got}}
  %0 = fp8.attention %q, %k, %k scale = 1.0 : !fp8.scaled<1x16x4x64xf8E4M3FN, block = [1, 8, 1, 32], scale = f32>, !fp8.scaled<1x16x4x64xf8E4M3FN, block = [1, 8, 1, *], scale = f32>, !fp8.scaled<1x16x4x64xf8E4M3FN, block = [1, 8, 1, *], scale = f32> -> tensor<1x16x4x64xbf16>
  return
}

// -----

func.func @c3_fast(%q: !fp8.scaled<1x16x4x64xf8E4M3FN, block = [1, 8, 1, *], scale = f32>) {
  // expected-error @below {{expected accumulate = promote with factors for blocks of positions of v, but got fast with '!fp8.scaled<1x16x4x64xf8E4M3FN, block = [1, 8, 1, *], scale = f32>'}}
  %0 = fp8.attention %q, %q, %q scale = 1.0 accumulate = fast : !fp8.scaled<1x16x4x64xf8E4M3FN, block = [1, 8, 1, *], scale = f32>, !fp8.scaled<1x16x4x64xf8E4M3FN, block = [1, 8, 1, *], scale = f32>, !fp8.scaled<1x16x4x64xf8E4M3FN, block = [1, 8, 1, *], scale = f32> -> tensor<1x16x4x64xbf16>
  return
}

// -----

func.func @c2_codes(%q: !fp8.scaled<1x16x4x64xf4E2M1FN, block = [*, *, *, *], scale = f32>, %k: !fp8.scaled<1x16x4x64xf4E2M1FN, block = [*, *, *, *], scale = f32>, %v: !fp8.scaled<1x16x4x64xf4E2M1FN, block = [*, *, *, *], scale = f32>) {
  // expected-error @below {{expected q to have codes of 8 bits, but got '!fp8.scaled<1x16x4x64xf4E2M1FN, block = [*, *, *, *], scale = f32>'}}
  %0 = fp8.attention %q, %k, %v scale = 1.0 : !fp8.scaled<1x16x4x64xf4E2M1FN, block = [*, *, *, *], scale = f32>, !fp8.scaled<1x16x4x64xf4E2M1FN, block = [*, *, *, *], scale = f32>, !fp8.scaled<1x16x4x64xf4E2M1FN, block = [*, *, *, *], scale = f32> -> tensor<1x16x4x64xbf16>
  return
}

// -----

func.func @c4_scale(%q: tensor<1x16x4x64xbf16>, %k: tensor<1x16x4x64xbf16>, %v: tensor<1x16x4x64xbf16>) {
  // expected-error @below {{expected scale to be finite and positive, but got 0.000000e+00 : f32}}
  %0 = fp8.attention %q, %k, %v scale = 0.0 : tensor<1x16x4x64xbf16>, tensor<1x16x4x64xbf16>, tensor<1x16x4x64xbf16> -> tensor<1x16x4x64xbf16>
  return
}

// -----

func.func @c5_window(%q: tensor<1x16x4x64xbf16>, %k: tensor<1x16x4x64xbf16>, %v: tensor<1x16x4x64xbf16>) {
  // expected-error @below {{expected window to have two entries, each at least 0 or '*', but got array<i64: 3>}}
  %0 = fp8.attention %q, %k, %v scale = 1.0 window = [3] : tensor<1x16x4x64xbf16>, tensor<1x16x4x64xbf16>, tensor<1x16x4x64xbf16> -> tensor<1x16x4x64xbf16>
  return
}

// -----

func.func @c6_p_scale(%q: tensor<1x16x4x64xbf16>, %k: tensor<1x16x4x64xbf16>, %v: tensor<1x16x4x64xbf16>) {
  // expected-error @below {{expected p_scale to be a power of two from 1 to the largest finite value of 'bf16', but got 3.000000e+00 : f32}}
  %0 = fp8.attention %q, %k, %v scale = 1.0 p_scale = 3.0 : tensor<1x16x4x64xbf16>, tensor<1x16x4x64xbf16>, tensor<1x16x4x64xbf16> -> tensor<1x16x4x64xbf16>
  return
}

// -----

func.func @c6_saturates(%q: !fp8.scaled<1x16x4x64xf8E4M3FN, block = [*, *, *, *], scale = f32>, %k: !fp8.scaled<1x16x4x64xf8E4M3FN, block = [*, *, *, *], scale = f32>, %v: !fp8.scaled<1x16x4x64xf8E4M3FN, block = [*, *, *, *], scale = f32>) {
  // expected-error @below {{expected p_scale to be a power of two from 1 to the largest finite value of 'f8E4M3FN', but got 5.120000e+02 : f32}}
  %0 = fp8.attention %q, %k, %v scale = 1.0 p_scale = 512.0 : !fp8.scaled<1x16x4x64xf8E4M3FN, block = [*, *, *, *], scale = f32>, !fp8.scaled<1x16x4x64xf8E4M3FN, block = [*, *, *, *], scale = f32>, !fp8.scaled<1x16x4x64xf8E4M3FN, block = [*, *, *, *], scale = f32> -> tensor<1x16x4x64xbf16>
  return
}

// -----

func.func @c9_promote(%q: tensor<1x16x4x64xbf16>, %k: tensor<1x16x4x64xbf16>, %v: tensor<1x16x4x64xbf16>) {
  // expected-error @below {{expected accumulate = fast with operands in high precision, but got promote}}
  %0 = fp8.attention %q, %k, %v scale = 1.0 accumulate = promote : tensor<1x16x4x64xbf16>, tensor<1x16x4x64xbf16>, tensor<1x16x4x64xbf16> -> tensor<1x16x4x64xbf16>
  return
}

// -----

func.func @c7_lse(%q: tensor<1x16x4x64xbf16>) {
  // expected-error @below {{expected lse to have shape 'tensor<1x4x16xf32>', but got 'tensor<1x16x4xf32>'}}
  %0, %1 = fp8.attention %q, %q, %q scale = 1.0 : tensor<1x16x4x64xbf16>, tensor<1x16x4x64xbf16>, tensor<1x16x4x64xbf16> -> tensor<1x16x4x64xbf16>, tensor<1x16x4xf32>
  return
}

// -----

func.func @c8_mask(%q: tensor<1x16x4x64xbf16>, %mask: tensor<16x8xf32>) {
  // expected-error @below {{expected mask to be of i1, f32, bf16 or f16 and to be broadcast to 'tensor<1x4x16x16xf32>', but got 'tensor<16x8xf32>'}}
  %0 = fp8.attention %q, %q, %q mask(%mask : tensor<16x8xf32>) scale = 1.0 : tensor<1x16x4x64xbf16>, tensor<1x16x4x64xbf16>, tensor<1x16x4x64xbf16> -> tensor<1x16x4x64xbf16>
  return
}

// -----

func.func @negative_side(%q: tensor<1x16x4x64xbf16>) {
  // expected-error @below {{expected a side of the window to be at least 0 or '*', but got -1}}
  %0 = fp8.attention %q, %q, %q scale = 1.0 window = [-1, 0] : tensor<1x16x4x64xbf16>, tensor<1x16x4x64xbf16>, tensor<1x16x4x64xbf16> -> tensor<1x16x4x64xbf16>
  return
}

// -----

func.func @c10_key_lengths(%q: tensor<2x16x4x64xbf16>, %lengths: tensor<4xi32>) {
  // expected-error @below {{expected key_lengths to have shape 'tensor<2xi32>', but got 'tensor<4xi32>'}}
  %0 = fp8.attention %q, %q, %q key_lengths(%lengths : tensor<4xi32>) scale = 1.0 : tensor<2x16x4x64xbf16>, tensor<2x16x4x64xbf16>, tensor<2x16x4x64xbf16> -> tensor<2x16x4x64xbf16>
  return
}

// -----

func.func @c11_rows(%q: tensor<2x1x4x64xbf16>, %k: tensor<9x16x4x64xbf16>, %table: tensor<3x4xi32>) {
  // expected-error @below {{expected page_table to have 2 rows, as q has batches, but got 'tensor<3x4xi32>'}}
  %0 = fp8.attention %q, %k, %k page_table(%table : tensor<3x4xi32>) scale = 1.0 : tensor<2x1x4x64xbf16>, tensor<9x16x4x64xbf16>, tensor<9x16x4x64xbf16> -> tensor<2x1x4x64xbf16>
  return
}

// -----

func.func @c11_page(%q: tensor<2x1x4x64xbf16>, %k: tensor<9x?x4x64xbf16>, %table: tensor<2x4xi32>) {
  // expected-error @below {{expected pages of a static, positive number of keys, but got 'tensor<9x?x4x64xbf16>'}}
  %0 = fp8.attention %q, %k, %k page_table(%table : tensor<2x4xi32>) scale = 1.0 : tensor<2x1x4x64xbf16>, tensor<9x?x4x64xbf16>, tensor<9x?x4x64xbf16> -> tensor<2x1x4x64xbf16>
  return
}

// -----

!q = !fp8.scaled<2x1x4x64xf8E4M3FN, block = [*, *, *, *], scale = f32>
!k = !fp8.scaled<9x16x4x64xf8E4M3FN, block = [1, *, 1, *], scale = f32>
func.func @c11_factors(%q: !q, %k: !k, %table: tensor<2x4xi32>) {
  // expected-error @below {{expected k to have a factor for the tensor with page_table, but got '!fp8.scaled<9x16x4x64xf8E4M3FN, block = [1, *, 1, *], scale = f32>'}}
  %0 = fp8.attention %q, %k, %k page_table(%table : tensor<2x4xi32>) scale = 1.0 : !q, !k, !k -> tensor<2x1x4x64xbf16>
  return
}

// -----

func.func @c12_key_starts(%q: tensor<2x16x4x64xbf16>, %starts: tensor<1xi32>) {
  // expected-error @below {{expected key_starts to have shape 'tensor<2xi32>', but got 'tensor<1xi32>'}}
  %0 = fp8.attention %q, %q, %q key_starts(%starts : tensor<1xi32>) scale = 1.0 : tensor<2x16x4x64xbf16>, tensor<2x16x4x64xbf16>, tensor<2x16x4x64xbf16> -> tensor<2x16x4x64xbf16>
  return
}

// -----

func.func @c13_key_ranges(%q: tensor<2x4x16x64xbf16>, %k: tensor<2x4x24x64xbf16>, %ranges: tensor<2x24x2xi32>) {
  // expected-error @below {{expected key_ranges to have shape 'tensor<2x16x2xi32>', but got 'tensor<2x24x2xi32>'}}
  %0 = fp8.attention %q, %k, %k key_ranges(%ranges : tensor<2x24x2xi32>) scale = 1.0 layout = bhsd : tensor<2x4x16x64xbf16>, tensor<2x4x24x64xbf16>, tensor<2x4x24x64xbf16> -> tensor<2x4x16x64xbf16>
  return
}

// -----

func.func @c13_sides(%q: tensor<2x16x4x64xbf16>, %ranges: tensor<2x16x3xi32>) {
  // expected-error @below {{expected key_ranges to have shape 'tensor<2x16x2xi32>', but got 'tensor<2x16x3xi32>'}}
  %0 = fp8.attention %q, %q, %q key_ranges(%ranges : tensor<2x16x3xi32>) scale = 1.0 : tensor<2x16x4x64xbf16>, tensor<2x16x4x64xbf16>, tensor<2x16x4x64xbf16> -> tensor<2x16x4x64xbf16>
  return
}

// -----

func.func @c14_sinks(%q: tensor<2x16x4x64xbf16>, %k: tensor<2x16x2x64xbf16>, %sinks: tensor<2xf32>) {
  // expected-error @below {{expected sinks to have shape 'tensor<4xf32>', but got 'tensor<2xf32>'}}
  %0 = fp8.attention %q, %k, %k sinks(%sinks : tensor<2xf32>) scale = 1.0 : tensor<2x16x4x64xbf16>, tensor<2x16x2x64xbf16>, tensor<2x16x2x64xbf16> -> tensor<2x16x4x64xbf16>
  return
}

// -----

func.func @c15_zero(%q: tensor<2x16x4x64xbf16>) {
  // expected-error @below {{expected cap to be finite and positive, but got 0.000000e+00 : f32}}
  %0 = fp8.attention %q, %q, %q scale = 1.0 cap = 0.0 : tensor<2x16x4x64xbf16>, tensor<2x16x4x64xbf16>, tensor<2x16x4x64xbf16> -> tensor<2x16x4x64xbf16>
  return
}

// -----

func.func @c15_negative(%q: tensor<2x16x4x64xbf16>) {
  // expected-error @below {{expected cap to be finite and positive, but got -1.000000e+00 : f32}}
  %0 = fp8.attention %q, %q, %q scale = 1.0 cap = -1.0 : tensor<2x16x4x64xbf16>, tensor<2x16x4x64xbf16>, tensor<2x16x4x64xbf16> -> tensor<2x16x4x64xbf16>
  return
}

// -----

func.func @c15_infinite(%q: tensor<2x16x4x64xbf16>) {
  // expected-error @below {{expected cap to be finite and positive, but got 0x7F800000 : f32}}
  %0 = fp8.attention %q, %q, %q scale = 1.0 cap = 0x7F800000 : tensor<2x16x4x64xbf16>, tensor<2x16x4x64xbf16>, tensor<2x16x4x64xbf16> -> tensor<2x16x4x64xbf16>
  return
}

// -----

func.func @c16_rate(%q: tensor<1x16x4x64xbf16>, %state: tensor<2xi64>) {
  // expected-error @below {{expected a rate from 0 to 1 - 2^-16, but got 1.000000e+00 : f32}}
  %0 = fp8.attention %q, %q, %q dropout(%state : tensor<2xi64>) rate = 1.0 scale = 1.0 : tensor<1x16x4x64xbf16>, tensor<1x16x4x64xbf16>, tensor<1x16x4x64xbf16> -> tensor<1x16x4x64xbf16>
  return
}

// -----

func.func @c16_rate_below(%q: tensor<1x16x4x64xbf16>, %state: tensor<2xi64>) {
  // expected-error @below {{expected a rate from 0 to 1 - 2^-16, but got -1.000000e-01 : f32}}
  %0 = fp8.attention %q, %q, %q dropout(%state : tensor<2xi64>) rate = -0.1 scale = 1.0 : tensor<1x16x4x64xbf16>, tensor<1x16x4x64xbf16>, tensor<1x16x4x64xbf16> -> tensor<1x16x4x64xbf16>
  return
}

// -----

func.func @c16_dynamic(%q: tensor<1x16x4x64xbf16>, %state: tensor<?xi64>) {
  // expected-error @below {{expected dropout to have shape 'tensor<2xi64>', but got 'tensor<?xi64>'}}
  %0 = fp8.attention %q, %q, %q dropout(%state : tensor<?xi64>) rate = 0.1 scale = 1.0 : tensor<1x16x4x64xbf16>, tensor<1x16x4x64xbf16>, tensor<1x16x4x64xbf16> -> tensor<1x16x4x64xbf16>
  return
}

// -----

func.func @c16_dropout(%q: tensor<1x16x4x64xbf16>, %state: tensor<3xi64>) {
  // expected-error @below {{expected dropout to have shape 'tensor<2xi64>', but got 'tensor<3xi64>'}}
  %0 = fp8.attention %q, %q, %q dropout(%state : tensor<3xi64>) rate = 0.1 scale = 1.0 : tensor<1x16x4x64xbf16>, tensor<1x16x4x64xbf16>, tensor<1x16x4x64xbf16> -> tensor<1x16x4x64xbf16>
  return
}

// -----

func.func @c16_no_rate(%q: tensor<1x16x4x64xbf16>, %state: tensor<2xi64>) {
  // expected-error @below {{expected dropout and its rate, but got one of both}}
  %0 = "fp8.attention"(%q, %q, %q, %state) <{softmax_scale = 1.0 : f32, operandSegmentSizes = array<i32: 1, 1, 1, 0, 0, 0, 0, 0, 0, 1>}> : (tensor<1x16x4x64xbf16>, tensor<1x16x4x64xbf16>, tensor<1x16x4x64xbf16>, tensor<2xi64>) -> tensor<1x16x4x64xbf16>
  return
}
