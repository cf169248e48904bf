// RUN: fp8-opt %s --split-input-file --verify-diagnostics

func.func @amax_c1_rank(%x: tensor<4x4xf32>) {
  // expected-error @below {{'fp8.amax' op expected block to have one entry for each of the 2 dimensions, but got 1}}
  %0 = fp8.amax %x block = [*] : tensor<4x4xf32>
  return
}

// -----

func.func @compute_scale_c1_format(%x: tensor<1x1xf32>) {
  // expected-error @below {{expected format f8E4M3FN, f8E5M2 or f4E2M1FN, but got 'bf16'}}
  %0:2 = fp8.compute_scale %x format = bf16 scale_type = f32 : tensor<1x1xf32>
  return
}

// -----

func.func @compute_scale_c2_scale_type(%x: tensor<1x1xf32>) {
  // expected-error @below {{result #1 must be ranked tensor of factor values}}
  %0:2 = fp8.compute_scale %x format = f8E4M3FN scale_type = f8E5M2 : tensor<1x1xf32>
  return
}

// -----

func.func @compute_scale_c3_missing(%x: tensor<1x1xf32>) {
  // expected-error @below {{expected tensor_amax exactly with scale_type = f8E4M3FN, but got scale_type = 'f8E4M3FN' without tensor_amax}}
  %0:2 = fp8.compute_scale %x format = f4E2M1FN scale_type = f8E4M3FN : tensor<1x1xf32>
  return
}

// -----

func.func @compute_scale_c3_shape(%x: tensor<4x4xf32>) {
  // expected-error @below {{expected tensor_amax to have one element and the rank of amax, but got 'tensor<4x4xf32>'}}
  %0:3 = fp8.compute_scale %x tensor_amax(%x : tensor<4x4xf32>) format = f4E2M1FN scale_type = f8E4M3FN : tensor<4x4xf32>
  return
}

// -----

func.func @quantize_c1_shape(%x: tensor<4x4xf32>) {
  // expected-error @below {{expected source and result to have the same shape}}
  %0 = fp8.quantize %x recipe(#fp8.current) : tensor<4x4xf32> -> !fp8.scaled<4x8xf8E4M3FN, block = [*, *], scale = f32>
  return
}

// -----

func.func @quantize_c2_neither(%x: tensor<4x4xf32>) {
  // expected-error @below {{expected exactly one of recipe and scale}}
  %0 = fp8.quantize %x : tensor<4x4xf32> -> !fp8.scaled<4x4xf8E4M3FN, block = [*, *], scale = f32>
  return
}

// -----

func.func @quantize_c3_scale(%x: tensor<4x128xf32>, %s: tensor<4x4xf32>) {
  // expected-error @below {{expected scale to have one element for each block ('tensor<4x1xf32>'), but got 'tensor<4x4xf32>'}}
  %0 = fp8.quantize %x scale(%s, %s : tensor<4x4xf32>, tensor<4x4xf32>) : tensor<4x128xf32> -> !fp8.scaled<4x128xf8E4M3FN, block = [1, 128], scale = f32>
  return
}

// -----

func.func @quantize_c4_scale_inv(%x: tensor<4x32xf32>, %s: tensor<4x1xf32>) {
  // expected-error @below {{expected scale_inv to be 'tensor<4x1xf8E8M0FNU>', but got 'tensor<4x1xf32>'}}
  %0 = fp8.quantize %x scale(%s, %s : tensor<4x1xf32>, tensor<4x1xf32>) : tensor<4x32xf32> -> !fp8.scaled<4x32xf8E4M3FN, block = [1, 32], scale = f8E8M0FNU>
  return
}

// -----

func.func @quantize_c5_tensor_scale(%x: tensor<4x16xf32>, %s: tensor<4x1xf32>, %si: tensor<4x1xf8E4M3FN>) {
  // expected-error @below {{expected tensor_scale_inv exactly when the result has a tensor_scale, but got none}}
  %0 = fp8.quantize %x scale(%s, %si : tensor<4x1xf32>, tensor<4x1xf8E4M3FN>) : tensor<4x16xf32> -> !fp8.scaled<4x16xf4E2M1FN, block = [1, 16], scale = f8E4M3FN, tensor_scale = f32>
  return
}

// -----

func.func @quantize_c6_none(%x: tensor<4x4xf32>) {
  // expected-error @below {{expected a recipe that quantizes, but got #fp8.none}}
  %0 = fp8.quantize %x recipe(#fp8.none) : tensor<4x4xf32> -> !fp8.scaled<4x4xf8E4M3FN, block = [*, *], scale = f32>
  return
}

// -----

func.func @quantize_c7_seed(%x: tensor<4x16xf32>, %s: tensor<1x1xf32>, %seed: tensor<2xi32>) {
  // expected-error @below {{expected seed to be tensor<4xi32>, but got 'tensor<2xi32>'}}
  %0 = fp8.quantize %x scale(%s, %s : tensor<1x1xf32>, tensor<1x1xf32>) seed(%seed : tensor<2xi32>) : tensor<4x16xf32> -> !fp8.scaled<4x16xf4E2M1FN, block = [*, *], scale = f32>
  return
}

// -----

func.func @quantize_c7_format(%x: tensor<4x16xf32>, %s: tensor<1x1xf32>, %seed: tensor<4xi32>) {
  // expected-error @below {{expected codes of f4E2M1FN with a seed, but got 'f8E4M3FN'}}
  %0 = fp8.quantize %x scale(%s, %s : tensor<1x1xf32>, tensor<1x1xf32>) seed(%seed : tensor<4xi32>) : tensor<4x16xf32> -> !fp8.scaled<4x16xf8E4M3FN, block = [*, *], scale = f32>
  return
}

// -----

func.func @hadamard_c1(%x: tensor<4x24xf32>) {
  // expected-error @below {{'fp8.hadamard' op expected a last dimension that is a multiple of 16, but got 'tensor<4x24xf32>'}}
  %0 = fp8.hadamard %x signs = 0 : tensor<4x24xf32>
  return
}

// -----

func.func @hadamard_c1_rank(%x: tensor<f32>) {
  // expected-error @below {{'fp8.hadamard' op expected a last dimension that is a multiple of 16, but got 'tensor<f32>'}}
  %0 = fp8.hadamard %x signs = 0 : tensor<f32>
  return
}

// -----

func.func @hadamard_c2(%x: tensor<4x32xf32>) {
  // expected-error @below {{'fp8.hadamard' op expected signs to be 0 to 65535, but got 65536}}
  %0 = fp8.hadamard %x signs = 65536 : tensor<4x32xf32>
  return
}

// -----

func.func @hadamard_c2_negative(%x: tensor<4x32xf32>) {
  // expected-error @below {{'fp8.hadamard' op expected signs to be 0 to 65535, but got -1}}
  %0 = fp8.hadamard %x signs = -1 : tensor<4x32xf32>
  return
}

// -----

func.func @dequantize_c1_shape(%q: !fp8.scaled<4x4xf8E4M3FN, block = [*, *], scale = f32>) {
  // expected-error @below {{expected source and result to have the same shape}}
  %0 = fp8.dequantize %q : !fp8.scaled<4x4xf8E4M3FN, block = [*, *], scale = f32> -> tensor<4x5xf32>
  return
}

// -----

func.func @measure_c1_shape(%x: tensor<4x5xf32>, %q: !fp8.scaled<4x4xf8E4M3FN, block = [*, *], scale = f32>) {
  // expected-error @below {{expected source and quantized to have the same shape}}
  %0:5 = fp8.measure %x, %q : tensor<4x5xf32>, !fp8.scaled<4x4xf8E4M3FN, block = [*, *], scale = f32>
  return
}

// -----

func.func @transpose_c1_permutation(%q: !fp8.scaled<4x4xf8E4M3FN, block = [*, *], scale = f32>) {
  // expected-error @below {{'fp8.transpose' op expected permutation to be a permutation of the 2 dimensions}}
  %0 = fp8.transpose %q permutation = [0, 0] : !fp8.scaled<4x4xf8E4M3FN, block = [*, *], scale = f32>
  return
}

// -----

func.func @assemble_c1_scale_inv(%p: tensor<4x128xf8E4M3FN>, %s: tensor<1x1xf32>) {
  // expected-error @below {{expected scale_inv to be 'tensor<4x1xf32>', but got 'tensor<1x1xf32>'}}
  %0 = fp8.assemble %p, %s : tensor<4x128xf8E4M3FN>, tensor<1x1xf32> -> !fp8.scaled<4x128xf8E4M3FN, block = [1, 128], scale = f32>
  return
}

// -----

!a = !fp8.scaled<4x16xf8E4M3FN, block = [*, *], scale = f32>
!b = !fp8.scaled<2x8x16xf8E4M3FN, block = [*, *, *], scale = f32>
func.func @matmul_c1_rank(%a: !a, %b: !b) {
  // expected-error @below {{expected a and b to have rank 2 or 3, both the same}}
  %0 = fp8.matmul %a, %b : !a, !b -> tensor<4x8xf32>
  return
}

// -----

!a = !fp8.scaled<4x16xf8E4M3FN, block = [*, *], scale = f32>
!b = !fp8.scaled<8x32xf8E4M3FN, block = [*, *], scale = f32>
func.func @matmul_c2_k(%a: !a, %b: !b) {
  // expected-error @below {{expected a and b to agree in K}}
  %0 = fp8.matmul %a, %b : !a, !b -> tensor<4x8xf32>
  return
}

// -----

!a = !fp8.scaled<4x16xf8E4M3FN, block = [*, *], scale = f32>
!b = !fp8.scaled<8x16xf8E4M3FN, block = [*, *], scale = f32>
func.func @matmul_c3_result(%a: !a, %b: !b) {
  // expected-error @below {{expected result to have shape 'tensor<4x8xf32>', but got 'tensor<8x4xf32>'}}
  %0 = fp8.matmul %a, %b : !a, !b -> tensor<8x4xf32>
  return
}

// -----

func.func @matmul_c1_rank_of_plain(%a: tensor<2x2x4x16xf32>) {
  // expected-error @below {{expected a and b to have rank 2 or 3, both the same, but got 'tensor<2x2x4x16xf32>' and 'tensor<2x2x4x16xf32>'}}
  %0 = fp8.matmul %a, %a accumulate = fast : tensor<2x2x4x16xf32>, tensor<2x2x4x16xf32> -> tensor<2x2x4x4xf32>
  return
}

// -----

func.func @matmul_c1_vector(%a: tensor<16xf32>) {
  // expected-error @below {{expected a and b to have rank 2 or 3, both the same, but got 'tensor<16xf32>' and 'tensor<16xf32>'}}
  %0 = fp8.matmul %a, %a transpose_a accumulate = fast : tensor<16xf32>, tensor<16xf32> -> tensor<f32>
  return
}

// -----

func.func @matmul_c2_k_transposed(%a: tensor<16x4xf16>, %b: tensor<8x16xf16>) {
  // expected-error @below {{expected a and b to agree in K, but got 'tensor<16x4xf16>' and 'tensor<8x16xf16>'}}
  %0 = fp8.matmul %a, %b transpose_a transpose_b accumulate = fast : tensor<16x4xf16>, tensor<8x16xf16> -> tensor<4x16xf16>
  return
}

// -----

func.func @matmul_c2_batch_of_plain(%a: tensor<2x4x16xf16>, %b: tensor<3x8x16xf16>) {
  // expected-error @below {{expected a and b to agree in the batch dimension, but got}}
  %0 = fp8.matmul %a, %b accumulate = fast : tensor<2x4x16xf16>, tensor<3x8x16xf16> -> tensor<2x4x8xf16>
  return
}

// -----

func.func @matmul_c3_transposed(%a: tensor<16x4xf16>, %b: tensor<16x8xf16>) {
  // expected-error @below {{expected result to have shape 'tensor<4x8xf32>', but got 'tensor<16x16xf32>'}}
  %0 = fp8.matmul %a, %b transpose_a transpose_b accumulate = fast : tensor<16x4xf16>, tensor<16x8xf16> -> tensor<16x16xf32>
  return
}

// -----

!a = !fp8.scaled<4x16xf4E2M1FN, block = [1, 16], scale = f8E8M0FNU>
!b = !fp8.scaled<4x16xf8E4M3FN, block = [1, 16], scale = f8E8M0FNU>
func.func @matmul_c4_e2m1(%a: !a, %b: !b) {
  // expected-error @below {{expected E2M1 to go with E2M1}}
  %0 = fp8.matmul %a, %b : !a, !b -> tensor<4x4xf32>
  return
}

// -----

!a = !fp8.scaled<4x128xf8E4M3FN, block = [1, 128], scale = f32>
!b = !fp8.scaled<4x128xf8E4M3FN, block = [1, *], scale = f32>
func.func @matmul_c5_blocks(%a: !a, %b: !b) {
  // expected-error @below {{expected a and b to have the same block extent in K}}
  %0 = fp8.matmul %a, %b : !a, !b -> tensor<4x4xf32>
  return
}

// -----

!a = !fp8.scaled<2x4x128xf8E4M3FN, block = [*, 1, *], scale = f32>
func.func @matmul_c5_batch(%a: !a) {
  // expected-error @below {{expected one scale for the tensor or a block of 1 in the batch dimension}}
  %0 = fp8.matmul %a, %a : !a, !a -> tensor<2x4x4xf32>
  return
}

// -----

!a = !fp8.scaled<128x128xf8E4M3FN, block = [128, 128], scale = f32>
func.func @matmul_c6_2d_2d(%a: !a) {
  // expected-error @below {{expected at most one operand with 2-D blocks}}
  %0 = fp8.matmul %a, %a : !a, !a -> tensor<128x128xf32>
  return
}

// -----

!a = !fp8.scaled<4x128xf8E4M3FN, block = [1, 128], scale = f32>
func.func @matmul_c7_fast(%a: !a) {
  // expected-error @below {{expected accumulate = promote with block scaling: the scale changes within K}}
  %0 = fp8.matmul %a, %a accumulate = fast : !a, !a -> tensor<4x4xf32>
  return
}

// -----

!a = !fp8.scaled<4x16xf8E4M3FN, block = [*, *], scale = f32>
func.func @matmul_c8_arguments(%a: !a, %c: tensor<4xbf16>) {
  // expected-error @below {{expected the epilogue to take ('f32', 'bf16'), but got ('f32')}}
  %0 = fp8.matmul %a, %a epilogue(%c : tensor<4xbf16>) {
  ^bb0(%acc: f32):
    fp8.yield %acc : f32
  } : !a, !a -> tensor<4x4xf32>
  return
}

// -----

!a = !fp8.scaled<4x16xf8E4M3FN, block = [*, *], scale = f32>
func.func @matmul_c8_yield(%a: !a) {
  // expected-error @below {{expected the epilogue to yield ('bf16')}}
  %0 = fp8.matmul %a, %a epilogue {
  ^bb0(%acc: f32):
    fp8.yield %acc : f32
  } : !a, !a -> tensor<4x4xbf16>
  return
}

// -----

!a = !fp8.scaled<4x16xf8E4M3FN, block = [*, *], scale = f32>
func.func @matmul_c8_yield_amax(%a: !a) {
  // expected-error @below {{expected the epilogue to yield ('f32', 'f32')}}
  %0:2 = fp8.matmul %a, %a epilogue {
  ^bb0(%acc: f32):
    fp8.yield %acc : f32
  } : !a, !a -> tensor<4x4xf32>, tensor<1x1xf32>
  return
}

// -----

!a = !fp8.scaled<4x16xf8E4M3FN, block = [*, *], scale = f32>
func.func @matmul_c10_codes(%a: !a) {
  // expected-error @below {{expected an epilogue that quantizes to 'tensor<4x4xf8E4M3FN>'}}
  %0 = fp8.matmul %a, %a : !a, !a -> tensor<4x4xf8E4M3FN>
  return
}

// -----

!a = !fp8.scaled<4x16xf8E4M3FN, block = [*, *], scale = f32>
func.func @matmul_c10_amax(%a: !a) {
  // expected-error @below {{expected an epilogue that yields what amax is of}}
  %0:2 = fp8.matmul %a, %a : !a, !a -> tensor<4x4xf32>, tensor<1x1xf32>
  return
}

// -----

!a = !fp8.scaled<4x16xf8E4M3FN, block = [*, *], scale = f32>
func.func @matmul_c10_amax_shape(%a: !a) {
  // expected-error @below {{expected amax to be 'tensor<1x1xf32>', but got 'tensor<4x1xf32>'}}
  %0:2 = fp8.matmul %a, %a epilogue {
  ^bb0(%acc: f32):
    fp8.yield %acc, %acc : f32, f32
  } : !a, !a -> tensor<4x4xf32>, tensor<4x1xf32>
  return
}

// -----

!a = !fp8.scaled<4x16xf8E4M3FN, block = [*, *], scale = f32>
func.func @matmul_c9_broadcast(%a: !a, %c: tensor<5xf32>) {
  // expected-error @below {{expected epilogue operand 'tensor<5xf32>' to broadcast to 'tensor<4x4xf32>'}}
  %0 = fp8.matmul %a, %a epilogue(%c : tensor<5xf32>) {
  ^bb0(%acc: f32, %c0: f32):
    fp8.yield %acc : f32
  } : !a, !a -> tensor<4x4xf32>
  return
}

// -----

!a = !fp8.scaled<4x16xf8E4M3FN, block = [*, *], scale = f32>
func.func @matmul_c11_mixed(%a: !a, %b: tensor<4x16xbf16>) {
  // expected-error @below {{expected a and b to be scaled, or tensors of one element type, but got '!fp8.scaled<4x16xf8E4M3FN, block = [*, *], scale = f32>' and 'tensor<4x16xbf16>'}}
  %0 = fp8.matmul %a, %b accumulate = fast : !a, tensor<4x16xbf16> -> tensor<4x4xf32>
  return
}

// -----

func.func @matmul_c11_element_types(%a: tensor<4x16xf16>, %b: tensor<4x16xbf16>) {
  // expected-error @below {{expected a and b to be scaled, or tensors of one element type, but got 'tensor<4x16xf16>' and 'tensor<4x16xbf16>'}}
  %0 = fp8.matmul %a, %b accumulate = fast : tensor<4x16xf16>, tensor<4x16xbf16> -> tensor<4x4xf32>
  return
}

// -----

func.func @matmul_c11_promote(%a: tensor<4x16xbf16>) {
  // expected-error @below {{expected accumulate = fast with operands in high precision, but got promote}}
  %0 = fp8.matmul %a, %a : tensor<4x16xbf16>, tensor<4x16xbf16> -> tensor<4x4xf32>
  return
}

// -----

// What a recipe says of the forward is decided: a GEMM has one accumulator.

func.func @matmul_accumulate(%a: tensor<4x16xbf16>) {
  // expected-error @below {{expected ::mlir::fp8::Accumulate to be one of: promote, fast}}
  // expected-error @below {{failed to parse FP8_AccumulateAttr parameter 'value'}}
  %0 = fp8.matmul %a, %a accumulate = fast_fprop : tensor<4x16xbf16>, tensor<4x16xbf16> -> tensor<4x4xf32>
  return
}

// -----

func.func @matmul_operand(%a: tensor<4x16xf64>) {
  // expected-error @below {{operand #0 must be a scaled tensor, or one of f32, bf16 or f16, but got 'tensor<4x16xf64>'}}
  %0 = fp8.matmul %a, %a accumulate = fast : tensor<4x16xf64>, tensor<4x16xf64> -> tensor<4x4xf32>
  return
}

// -----

func.func @lift_c1_rank(%p: tensor<64xf4E2M1FN>, %e: tensor<1xi32>) {
  // expected-error @below {{'fp8.lift' op expected codes of 2 or 3 dimensions, but got 'tensor<64xf4E2M1FN>'}}
  %0 = fp8.lift %p, %e : tensor<64xf4E2M1FN>, tensor<1xi32> -> tensor<64xf8E4M3FN>
  return
}

// -----

func.func @lift_c1_exponents(%p: tensor<64x288xf4E2M1FN>, %e: tensor<64x3xi32>) {
  // expected-error @below {{expected exponents of 'tensor<3x64xi32>', but got 'tensor<64x3xi32>'}}
  %0 = fp8.lift %p, %e : tensor<64x288xf4E2M1FN>, tensor<64x3xi32> -> tensor<64x288xf8E4M3FN>
  return
}

// -----

func.func @lift_c1_result(%p: tensor<64x288xf4E2M1FN>, %e: tensor<3x64xi32>) {
  // expected-error @below {{expected a result of the shape of 'tensor<64x288xf4E2M1FN>', but got 'tensor<64x256xf8E4M3FN>'}}
  %0 = fp8.lift %p, %e : tensor<64x288xf4E2M1FN>, tensor<3x64xi32> -> tensor<64x256xf8E4M3FN>
  return
}
