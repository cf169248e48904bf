// RUN: fp8-opt --fp8-set-target=chip=sm_100a --fp8-select-kernels --split-input-file --verify-diagnostics %s | FileCheck %s

!x = !fp8.scaled<8192x8192xf8E4M3FN, block = [*, *], scale = f32>
// CHECK-LABEL: func.func @large
// CHECK: fp8_gpu.config = #fp8_sm100.gemm<tile_m = 256, tile_n = 224, stages = 6, cta_group = 2>
func.func @large(%a: !x) -> tensor<8192x8192xbf16> {
  %0 = fp8.matmul %a, %a : !x, !x -> tensor<8192x8192xbf16>
  return %0 : tensor<8192x8192xbf16>
}

// Few rows take the side of the tensor core that shrinks.

!f = !fp8.scaled<16x8192xf8E4M3FN, block = [*, *], scale = f32>
// CHECK-LABEL: func.func @small
// CHECK: fp8_gpu.config = #fp8_sm100.gemm<tile_m = 16, tile_n = 128, {{.*}}swap_ab = true, store = direct>
func.func @small(%a: !f, %b: !x) -> tensor<16x8192xbf16> {
  %0 = fp8.matmul %a, %b : !f, !x -> tensor<16x8192xbf16>
  return %0 : tensor<16x8192xbf16>
}

// Rows of 251 elements are no multiple of 16 bytes.

!o = !fp8.scaled<251x8192xf8E4M3FN, block = [*, *], scale = f32>
// CHECK-LABEL: func.func @odd
// CHECK: fp8_gpu.config = #fp8_sm100.gemm<{{.*}}store = direct
func.func @odd(%a: !x, %b: !o) -> tensor<8192x251xbf16> {
  %0 = fp8.matmul %a, %b : !x, !o -> tensor<8192x251xbf16>
  return %0 : tensor<8192x251xbf16>
}

// Beside factors in tensor memory two sets of 256 columns share some, and a tile
// waits for those of the tile before: not long for many K blocks.

!m = !fp8.scaled<8192x8192xf8E4M3FN, block = [1, 32], scale = f8E8M0FNU>
// CHECK-LABEL: func.func @mxfp8
// CHECK: fp8_gpu.config = #fp8_sm100.gemm<tile_m = 256, tile_n = 256, stages = 5, cta_group = 2>
func.func @mxfp8(%a: !m) -> tensor<8192x8192xbf16> {
  %0 = fp8.matmul %a, %a : !m, !m -> tensor<8192x8192xbf16>
  return %0 : tensor<8192x8192xbf16>
}

!mk = !fp8.scaled<8192x1024xf8E4M3FN, block = [1, 32], scale = f8E8M0FNU>
// CHECK-LABEL: func.func @mxfp8_short
// CHECK: fp8_gpu.config = #fp8_sm100.gemm<tile_m = 256, tile_n = 224, stages = 6, cta_group = 2>
func.func @mxfp8_short(%a: !mk) -> tensor<8192x8192xbf16> {
  %0 = fp8.matmul %a, %a : !mk, !mk -> tensor<8192x8192xbf16>
  return %0 : tensor<8192x8192xbf16>
}

!n = !fp8.scaled<8192x8192xf4E2M1FN, block = [1, 16], scale = f8E4M3FN, tensor_scale = f32>
// CHECK-LABEL: func.func @nvfp4
// CHECK: fp8_gpu.config = #fp8_sm100.gemm<tile_m = 256, tile_n = 256, stages = 5, cta_group = 2>
func.func @nvfp4(%a: !n) -> tensor<8192x8192xbf16> {
  %0 = fp8.matmul %a, %a : !n, !n -> tensor<8192x8192xbf16>
  return %0 : tensor<8192x8192xbf16>
}

!q = !fp8.scaled<8192x8192xf4E2M1FN, block = [1, 32], scale = f8E8M0FNU>
// CHECK-LABEL: func.func @mxfp4
// CHECK: fp8_gpu.config = #fp8_sm100.gemm<tile_m = 256, tile_n = 256, stages = 5, cta_group = 2>
func.func @mxfp4(%a: !q) -> tensor<8192x8192xbf16> {
  %0 = fp8.matmul %a, %a : !q, !q -> tensor<8192x8192xbf16>
  return %0 : tensor<8192x8192xbf16>
}

// -----

// Factors in f32 along K, which may be any: beside the tensor core.

!a = !fp8.scaled<8192x8192xf8E4M3FN, block = [1, 128], scale = f32>
!b = !fp8.scaled<8192x8192xf8E4M3FN, block = [128, 128], scale = f32>
// CHECK-LABEL: func.func @block
// CHECK: fp8_gpu.config = #fp8_sm100.gemm<tile_m = 256, tile_n = 256, stages = 5, staging = 1, epilogue_warpgroups = 2, cta_group = 2>
func.func @block(%a: !a, %b: !b) -> tensor<8192x8192xbf16> {
  // expected-remark @below {{sums of each 128 of K are multiplied by their factors in registers: computed, not measured, that takes 1.18 of the time of known powers of two, which tensor cores multiply}}
  %0 = fp8.matmul %a, %b : !a, !b -> tensor<8192x8192xbf16>
  return %0 : tensor<8192x8192xbf16>
}

!f = !fp8.scaled<16x8192xf8E4M3FN, block = [1, 128], scale = f32>
// CHECK-LABEL: func.func @block_small
// CHECK: fp8_gpu.config = #fp8_sm100.gemm<tile_m = 16, tile_n = 128, {{.*}}swap_ab = true, store = direct>
func.func @block_small(%a: !f, %b: !b) -> tensor<16x8192xbf16> {
  // expected-remark @below {{sums of each 128 of K are multiplied by their factors in registers}}
  %0 = fp8.matmul %a, %b : !f, !b -> tensor<16x8192xbf16>
  return %0 : tensor<16x8192xbf16>
}

// There is nothing to compare with for a K that tensor cores do not multiply
// with factors of a byte.

!k = !fp8.scaled<512x400xf8E4M3FN, block = [1, 128], scale = f32>
// CHECK-LABEL: func.func @block_of_other_k
// CHECK: fp8_gpu.config
func.func @block_of_other_k(%a: !k) -> tensor<512x512xbf16> {
  // expected-remark @below {{sums of each 128 of K are multiplied by their factors in registers}}
  %0 = fp8.matmul %a, %a : !k, !k -> tensor<512x512xbf16>
  return %0 : tensor<512x512xbf16>
}

// -----

!a = !fp8.scaled<512x512xf8E4M3FN, block = [128, 1], scale = f32>
func.func @block_transposed(%a: !a) -> tensor<512x512xbf16> {
  // expected-remark @below {{no kernel: expected K to be the innermost dimension of A, whose factors run along it}}
  %0 = fp8.matmul %a, %a transpose_a transpose_b : !a, !a -> tensor<512x512xbf16>
  return %0 : tensor<512x512xbf16>
}

// -----

// More sums than a thread has registers for, and columns of two blocks.

!a = !fp8.scaled<512x512xf8E4M3FN, block = [1, 128], scale = f32>
func.func @block_registers(%a: !a) -> tensor<512x512xbf16> {
  // expected-error @below {{expected up to 128 columns for each warpgroup that adds up K blocks, within one of factors, but #fp8_sm100.gemm<tile_m = 128, tile_n = 256, stages = 3> has 256}}
  %0 = fp8.matmul %a, %a {fp8_gpu.config = #fp8_sm100.gemm<tile_m = 128, tile_n = 256, stages = 3>} : !a, !a -> tensor<512x512xbf16>
  return %0 : tensor<512x512xbf16>
}

// -----

!a = !fp8.scaled<512x512xf8E4M3FN, block = [1, 128], scale = f32>
func.func @block_addresses(%a: !a) -> tensor<512x512xbf16> {
  // expected-error @below {{expected up to 64 columns for each warpgroup that adds up K blocks, within one of factors, but #fp8_sm100.gemm<tile_m = 128, tile_n = 128, stages = 3, store = direct> has 128}}
  %0 = fp8.matmul %a, %a {fp8_gpu.config = #fp8_sm100.gemm<tile_m = 128, tile_n = 128, stages = 3, store = direct>} : !a, !a -> tensor<512x512xbf16>
  return %0 : tensor<512x512xbf16>
}

// -----

!a = !fp8.scaled<512x512xf8E4M3FN, block = [1, 128], scale = f32>
!b = !fp8.scaled<512x512xf8E4M3FN, block = [128, 128], scale = f32>
func.func @block_cut(%a: !a, %b: !b) -> tensor<512x512xbf16> {
  // expected-error @below {{expected up to 128 columns for each warpgroup that adds up K blocks, within one of factors, but #fp8_sm100.gemm<tile_m = 128, tile_n = 96, stages = 3> has 96}}
  %0 = fp8.matmul %a, %b {fp8_gpu.config = #fp8_sm100.gemm<tile_m = 128, tile_n = 96, stages = 3>} : !a, !b -> tensor<512x512xbf16>
  return %0 : tensor<512x512xbf16>
}

// -----

!a = !fp8.scaled<512x64xf8E4M3FN, block = [1, 32], scale = f8E8M0FNU>
func.func @micro(%a: !a) -> tensor<512x512xbf16> {
  // expected-remark @below {{no kernel: expected a known K that is a multiple of 128, with factors of 32}}
  %0 = fp8.matmul %a, %a : !a, !a -> tensor<512x512xbf16>
  return %0 : tensor<512x512xbf16>
}

// -----

!a = !fp8.scaled<512x96xf4E2M1FN, block = [1, 16], scale = f8E4M3FN, tensor_scale = f32>
func.func @nvfp4(%a: !a) -> tensor<512x512xbf16> {
  // expected-remark @below {{no kernel: expected a known K that is a multiple of 64, with factors of 16}}
  %0 = fp8.matmul %a, %a : !a, !a -> tensor<512x512xbf16>
  return %0 : tensor<512x512xbf16>
}

// -----

!a = !fp8.scaled<512x80xf4E2M1FN, block = [1, 16], scale = f8E4M3FN, tensor_scale = f32>
func.func @rows(%a: !a) -> tensor<512x512xbf16> {
  // expected-remark @below {{no kernel: expected K to be a multiple of 32, which bulk tensor copies of A need, but got 80}}
  %0 = fp8.matmul %a, %a : !a, !a -> tensor<512x512xbf16>
  return %0 : tensor<512x512xbf16>
}

// -----

// Codes of 4 bits with a factor in f32, which no tensor core multiplies.

!a = !fp8.scaled<512x512xf4E2M1FN, block = [1, *], scale = f32>
func.func @four_bits(%a: !a) -> tensor<512x512xbf16> {
  // expected-remark @below {{no kernel: expected A to have f32 scale factors per tensor, per row, per 1x128 or per 128x128}}
  %0 = fp8.matmul %a, %a : !a, !a -> tensor<512x512xbf16>
  return %0 : tensor<512x512xbf16>
}

// -----

// Codes of 4 bits with rows innermost.

!a = !fp8.scaled<512x512xf4E2M1FN, block = [16, 1], scale = f8E4M3FN, tensor_scale = f32>
func.func @transposed(%a: !a) -> tensor<512x512xbf16> {
  // expected-remark @below {{no kernel: expected K to be the innermost dimension of A, whose factors run along it}}
  %0 = fp8.matmul %a, %a transpose_a transpose_b : !a, !a -> tensor<512x512xbf16>
  return %0 : tensor<512x512xbf16>
}

// -----

func.func @tf32(%a: tensor<512x512xf32>) -> tensor<512x512xf32> {
  // expected-remark @below {{no kernel: expected K to be the innermost dimension of A, which the tensor core transposes only of 8- and 16-bit elements, but they are f32}}
  %0 = fp8.matmul %a, %a transpose_a accumulate = fast : tensor<512x512xf32>, tensor<512x512xf32> -> tensor<512x512xf32>
  return %0 : tensor<512x512xf32>
}

// -----

// Configs of another architecture.

!x = !fp8.scaled<512x512xf8E4M3FN, block = [*, *], scale = f32>
func.func @config(%a: !x) -> tensor<512x512xbf16> {
  // expected-error @below {{expected a #fp8_sm100.gemm, but got #fp8_sm90.gemm<tile_m = 128, tile_n = 128, stages = 4>}}
  %0 = fp8.matmul %a, %a {fp8_gpu.config = #fp8_sm90.gemm<tile_m = 128, tile_n = 128, stages = 4>} : !x, !x -> tensor<512x512xbf16>
  return %0 : tensor<512x512xbf16>
}

// -----

func.func @memory(%a: !fp8.scaled<512x512xf8E4M3FN, block = [*, *], scale = f32>) -> tensor<512x512xbf16> {
  // expected-error @below {{expected up to 232448 bytes of shared memory, but #fp8_sm100.gemm<tile_m = 128, tile_n = 256, stages = 5> needs 278648}}
  %0 = fp8.matmul %a, %a {fp8_gpu.config = #fp8_sm100.gemm<tile_m = 128, tile_n = 256, stages = 5>} : !fp8.scaled<512x512xf8E4M3FN, block = [*, *], scale = f32>, !fp8.scaled<512x512xf8E4M3FN, block = [*, *], scale = f32> -> tensor<512x512xbf16>
  return %0 : tensor<512x512xbf16>
}
