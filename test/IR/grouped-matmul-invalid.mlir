// RUN: fp8-opt %s --split-input-file --verify-diagnostics

func.func @grouped_matmul_c1_rank(%x: tensor<2x32x128xbf16>, %w: tensor<2x64x128xbf16>, %offsets: tensor<3xi32>) {
  // expected-error @below {{'fp8.grouped_matmul' op expected a of rank 2 with offsets, but got 'tensor<2x32x128xbf16>'}}
  %0 = fp8.grouped_matmul %x, %w offsets(%offsets : tensor<3xi32>) accumulate = fast
      : tensor<2x32x128xbf16>, tensor<2x64x128xbf16> -> tensor<32x64xbf16>
  return
}

// -----

func.func @grouped_matmul_c2_k(%x: tensor<32x128xbf16>, %w: tensor<2x64x96xbf16>, %offsets: tensor<3xi32>) {
  // expected-error @below {{expected a and b to agree in K, but got 'tensor<32x128xbf16>' and 'tensor<2x64x96xbf16>'}}
  %0 = fp8.grouped_matmul %x, %w offsets(%offsets : tensor<3xi32>) accumulate = fast
      : tensor<32x128xbf16>, tensor<2x64x96xbf16> -> tensor<32x64xbf16>
  return
}

// -----

func.func @grouped_matmul_c2_t(%dy: tensor<64x32xbf16>, %x: tensor<128x48xbf16>, %offsets: tensor<3xi32>) {
  // expected-error @below {{expected a and b to agree in T, which is summed over, but got 'tensor<64x32xbf16>' and 'tensor<128x48xbf16>'}}
  %0 = fp8.grouped_matmul %dy, %x offsets(%offsets : tensor<3xi32>) accumulate = fast
      : tensor<64x32xbf16>, tensor<128x48xbf16> -> tensor<2x64x128xf32>
  return
}

// -----

func.func @grouped_matmul_c3_offsets(%x: tensor<32x128xbf16>, %w: tensor<2x64x128xbf16>, %offsets: tensor<2xi32>) {
  // expected-error @below {{expected offsets to have one element more than there are groups, but got 'tensor<2xi32>' for 2 groups}}
  %0 = fp8.grouped_matmul %x, %w offsets(%offsets : tensor<2xi32>) accumulate = fast
      : tensor<32x128xbf16>, tensor<2x64x128xbf16> -> tensor<32x64xbf16>
  return
}

// -----

func.func @grouped_matmul_c3_type(%x: tensor<32x128xbf16>, %w: tensor<2x64x128xbf16>, %offsets: tensor<3xi64>) {
  // expected-error @below {{operand #2 must be 1D tensor of 32-bit signless integer values, but got 'tensor<3xi64>'}}
  %0 = fp8.grouped_matmul %x, %w offsets(%offsets : tensor<3xi64>) accumulate = fast
      : tensor<32x128xbf16>, tensor<2x64x128xbf16> -> tensor<32x64xbf16>
  return
}

// -----

func.func @grouped_matmul_c4_rows(%x: tensor<32x128xbf16>, %w: tensor<2x64x128xbf16>, %offsets: tensor<3xi32>) {
  // expected-error @below {{expected result to have shape 'tensor<32x64xbf16>', but got 'tensor<2x32x64xbf16>'}}
  %0 = fp8.grouped_matmul %x, %w offsets(%offsets : tensor<3xi32>) accumulate = fast
      : tensor<32x128xbf16>, tensor<2x64x128xbf16> -> tensor<2x32x64xbf16>
  return
}

// -----

func.func @grouped_matmul_c4_k(%dy: tensor<64x32xbf16>, %x: tensor<128x32xbf16>, %offsets: tensor<3xi32>) {
  // expected-error @below {{expected result to have shape 'tensor<2x64x128xf32>', but got 'tensor<64x128xf32>'}}
  %0 = fp8.grouped_matmul %dy, %x offsets(%offsets : tensor<3xi32>) accumulate = fast
      : tensor<64x32xbf16>, tensor<128x32xbf16> -> tensor<64x128xf32>
  return
}

// -----

func.func @grouped_matmul_c5_plain(%x: tensor<32x128xbf16>, %w: tensor<2x64x128xf16>, %offsets: tensor<3xi32>) {
  // expected-error @below {{expected a and b to be scaled, or tensors of one element type, but got 'tensor<32x128xbf16>' and 'tensor<2x64x128xf16>'}}
  %0 = fp8.grouped_matmul %x, %w offsets(%offsets : tensor<3xi32>) accumulate = fast
      : tensor<32x128xbf16>, tensor<2x64x128xf16> -> tensor<32x64xbf16>
  return
}

// -----

func.func @grouped_matmul_c5_promote(%x: tensor<32x128xbf16>, %w: tensor<2x64x128xbf16>, %offsets: tensor<3xi32>) {
  // expected-error @below {{expected accumulate = fast with operands in high precision, but got promote}}
  %0 = fp8.grouped_matmul %x, %w offsets(%offsets : tensor<3xi32>)
      : tensor<32x128xbf16>, tensor<2x64x128xbf16> -> tensor<32x64xbf16>
  return
}

// -----

!x = !fp8.scaled<32x128xf8E4M3FN, block = [1, *], scale = f32>
!w = !fp8.scaled<2x64x128xf8E4M3FN, block = [*, 1, *], scale = f32>
func.func @grouped_matmul_c5_groups(%x: !x, %w: !w, %offsets: tensor<3xi32>) {
  // expected-error @below {{expected one scale for the tensor or a block of 1 in the dimension of groups, but got}}
  %0 = fp8.grouped_matmul %x, %w offsets(%offsets : tensor<3xi32>) : !x, !w -> tensor<32x64xbf16>
  return
}

// -----

!x = !fp8.scaled<256x128xf8E4M3FN, block = [128, 128], scale = f32>
!w = !fp8.scaled<2x64x128xf8E4M3FN, block = [1, 1, 128], scale = f32>
func.func @grouped_matmul_c5_rows(%x: !x, %w: !w, %offsets: tensor<3xi32>) {
  // expected-error @below {{expected a to have a scale factor for each row or for all, as groups begin anywhere, but got}}
  %0 = fp8.grouped_matmul %x, %w offsets(%offsets : tensor<3xi32>) : !x, !w -> tensor<256x64xbf16>
  return
}

// -----

!x = !fp8.scaled<32x128xf8E4M3FN, block = [1, 128], scale = f32>
!w = !fp8.scaled<2x64x128xf8E4M3FN, block = [1, 1, *], scale = f32>
func.func @grouped_matmul_c5_blocks(%x: !x, %w: !w, %offsets: tensor<3xi32>) {
  // expected-error @below {{expected a and b to have the same block extent in K, but got}}
  %0 = fp8.grouped_matmul %x, %w offsets(%offsets : tensor<3xi32>) : !x, !w -> tensor<32x64xbf16>
  return
}

// -----

func.func @grouped_matmul_c6_yield(%x: tensor<32x128xbf16>, %w: tensor<2x64x128xbf16>, %offsets: tensor<3xi32>) {
  // expected-error @below {{expected the epilogue to yield ('bf16')}}
  %0 = fp8.grouped_matmul %x, %w offsets(%offsets : tensor<3xi32>) accumulate = fast epilogue {
  ^bb0(%acc: f32):
    fp8.yield %acc : f32
  } : tensor<32x128xbf16>, tensor<2x64x128xbf16> -> tensor<32x64xbf16>
  return
}

// -----

func.func @grouped_matmul_c7_operand(%x: tensor<32x128xbf16>, %w: tensor<2x64x128xbf16>, %offsets: tensor<3xi32>, %bias: tensor<2x64xf32>) {
  // expected-error @below {{expected epilogue operand 'tensor<2x64xf32>' to broadcast to 'tensor<32x64xf32>'}}
  %0 = fp8.grouped_matmul %x, %w offsets(%offsets : tensor<3xi32>) accumulate = fast epilogue(%bias : tensor<2x64xf32>) {
  ^bb0(%acc: f32, %b: f32):
    %1 = arith.addf %acc, %b : f32
    fp8.yield %1 : f32
  } : tensor<32x128xbf16>, tensor<2x64x128xbf16> -> tensor<32x64xf32>
  return
}

// -----

func.func @grouped_matmul_c1_ranks(%x: tensor<2x32x128xbf16>, %w: tensor<64x128xbf16>, %counts: tensor<2xi32>) {
  // expected-error @below {{expected a to have rank 2 and b rank 3 or 2, or both rank 3, but got 'tensor<2x32x128xbf16>' and 'tensor<64x128xbf16>'}}
  %0 = fp8.grouped_matmul %x, %w counts(%counts : tensor<2xi32>) accumulate = fast
      : tensor<2x32x128xbf16>, tensor<64x128xbf16> -> tensor<2x32x64xbf16>
  return
}

// -----

func.func @grouped_matmul_c1_counts(%x: tensor<32x128xbf16>, %w: tensor<2x64x128xbf16>, %counts: tensor<2xi32>) {
  // expected-error @below {{expected a of rank 3 with counts, but got 'tensor<32x128xbf16>'}}
  %0 = fp8.grouped_matmul %x, %w counts(%counts : tensor<2xi32>) accumulate = fast
      : tensor<32x128xbf16>, tensor<2x64x128xbf16> -> tensor<32x64xbf16>
  return
}

// -----

func.func @grouped_matmul_c2_groups(%x: tensor<3x32x128xbf16>, %w: tensor<2x64x128xbf16>, %counts: tensor<2xi32>) {
  // expected-error @below {{expected a and b to agree in the number of groups, but got 'tensor<3x32x128xbf16>' and 'tensor<2x64x128xbf16>'}}
  %0 = fp8.grouped_matmul %x, %w counts(%counts : tensor<2xi32>) accumulate = fast
      : tensor<3x32x128xbf16>, tensor<2x64x128xbf16> -> tensor<2x32x64xbf16>
  return
}

// -----

func.func @grouped_matmul_c3_counts(%x: tensor<2x32x128xbf16>, %w: tensor<2x64x128xbf16>, %counts: tensor<3xi32>) {
  // expected-error @below {{expected counts to have one element for each group, but got 'tensor<3xi32>' for 2 groups}}
  %0 = fp8.grouped_matmul %x, %w counts(%counts : tensor<3xi32>) accumulate = fast
      : tensor<2x32x128xbf16>, tensor<2x64x128xbf16> -> tensor<2x32x64xbf16>
  return
}

// -----

func.func @grouped_matmul_c4_counts(%x: tensor<2x32x128xbf16>, %w: tensor<2x64x128xbf16>, %counts: tensor<2xi32>) {
  // expected-error @below {{expected result to have shape 'tensor<2x32x64xbf16>', but got 'tensor<2x64x32xbf16>'}}
  %0 = fp8.grouped_matmul %x, %w counts(%counts : tensor<2xi32>) accumulate = fast
      : tensor<2x32x128xbf16>, tensor<2x64x128xbf16> -> tensor<2x64x32xbf16>
  return
}

// -----

!x = !fp8.scaled<2x32x128xf8E4M3FN, block = [*, 1, *], scale = f32>
!w = !fp8.scaled<2x64x128xf8E4M3FN, block = [1, 1, *], scale = f32>
func.func @grouped_matmul_c5_groups_of_a(%x: !x, %w: !w, %counts: tensor<2xi32>) {
  // expected-error @below {{expected one scale for the tensor or a block of 1 in the dimension of groups, but got}}
  %0 = fp8.grouped_matmul %x, %w counts(%counts : tensor<2xi32>) : !x, !w -> tensor<2x32x64xbf16>
  return
}

// -----

!x = !fp8.scaled<2x32x128xf8E4M3FN, block = [1, 1, 128], scale = f32>
!w = !fp8.scaled<2x64x128xf8E4M3FN, block = [1, 1, *], scale = f32>
func.func @grouped_matmul_c5_blocks_of_groups(%x: !x, %w: !w, %counts: tensor<2xi32>) {
  // expected-error @below {{expected a and b to have the same block extent in K, but got}}
  %0 = fp8.grouped_matmul %x, %w counts(%counts : tensor<2xi32>) : !x, !w -> tensor<2x32x64xbf16>
  return
}

// -----

func.func @grouped_matmul_c8_rest(%dy: tensor<2x64x32xbf16>, %x: tensor<2x128x32xbf16>, %counts: tensor<2xi32>) {
  // expected-error @below {{expected undef_padding with groups of rows, but these are of what is summed over}}
  %0 = fp8.grouped_matmul %dy, %x counts_k(%counts : tensor<2xi32>) undef_padding accumulate = fast
      : tensor<2x64x32xbf16>, tensor<2x128x32xbf16> -> tensor<2x64x128xf32>
  return
}

// -----

func.func @grouped_matmul_c8_offsets(%x: tensor<32x128xbf16>, %w: tensor<2x64x128xbf16>, %offsets: tensor<3xi32>) {
  // expected-error @below {{expected expected_m with counts, and 0 or more, but got 8 with offsets}}
  %0 = fp8.grouped_matmul %x, %w offsets(%offsets : tensor<3xi32>) accumulate = fast {expected_m = 8}
      : tensor<32x128xbf16>, tensor<2x64x128xbf16> -> tensor<32x64xbf16>
  return
}

// -----

func.func @grouped_matmul_c8_negative(%x: tensor<2x32x128xbf16>, %w: tensor<2x64x128xbf16>, %counts: tensor<2xi32>) {
  // expected-error @below {{expected expected_m with counts, and 0 or more, but got -1 with counts}}
  %0 = fp8.grouped_matmul %x, %w counts(%counts : tensor<2xi32>) accumulate = fast {expected_m = -1}
      : tensor<2x32x128xbf16>, tensor<2x64x128xbf16> -> tensor<2x32x64xbf16>
  return
}
