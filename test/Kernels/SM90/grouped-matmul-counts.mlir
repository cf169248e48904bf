// RUN: fp8-opt %s --fp8-set-target=chip=sm_90a --fp8-select-kernels --fp8-build-kernels --fp8-launch-kernels --canonicalize | FileCheck %s
// RUN: fp8-opt %s --fp8-set-target=chip=sm_90a --fp8-select-kernels --fp8-build-kernels | fp8-translate --kernels-to-ptx | FileCheck %s --check-prefix=PTX

!x = !fp8.scaled<4x256x1024xf8E4M3FN, block = [1, 1, *], scale = f32>
!w = !fp8.scaled<4x512x1024xf8E4M3FN, block = [1, 1, *], scale = f32>
!dy = !fp8.scaled<4x512x256xf8E5M2, block = [*, *, *], scale = f32>
!xt = !fp8.scaled<4x1024x256xf8E4M3FN, block = [*, *, *], scale = f32>

// Every argument has a dimension of groups; the grid is for groups that fill
// all that they have room for.

// CHECK-DAG: #[[ROWS:.+]] = affine_map<()[s0, s1, s2, s3] -> (((s0 ceildiv 128) * s3) * (s1 ceildiv 64))>
// CHECK-DAG: #[[K:.+]] = affine_map<()[s0, s1, s2, s3] -> (((s0 ceildiv 128) * (s1 ceildiv 128)) * s3)>
// CHECK-DAG: #[[OF_ROWS:.+]] = #fp8_gpu.launch<arguments = [#fp8_gpu.argument<name = "a", element = f8E4M3FN, rank = 3, {{.+}}>, #fp8_gpu.argument<name = "scale_a", element = f32, rank = 3, {{.+}}>, #fp8_gpu.argument<name = "b", element = f8E4M3FN, rank = 3, {{.+}}>, #fp8_gpu.argument<name = "scale_b", element = f32, rank = 3, {{.+}}>, #fp8_gpu.argument<name = "counts", element = i32, rank = 1, access = read, alignment = 4>, #fp8_gpu.argument<name = "d", element = bf16, rank = 3, access = write, {{.+}}>], extents = [#fp8_gpu.extent<"m", 0, 1>, #fp8_gpu.extent<"n", 2, 1>, #fp8_gpu.extent<"k", 0, 2>, #fp8_gpu.extent<"bounds", 4, 0>], {{.*}}grid = #[[ROWS]],
// CHECK-DAG: #[[OF_K:.+]] = #fp8_gpu.launch<{{.+}}#fp8_gpu.argument<name = "d", element = f32, rank = 3, {{.+}}grid = #[[K]],

// What leaves rows of its result as they are does not overwrite all of it.

// CHECK-DAG: = #fp8_gpu.launch<{{.+}}#fp8_gpu.argument<name = "d", element = bf16, rank = 3, access = update, {{.+}}>], extents

// CHECK-LABEL: func.func @rows
// CHECK:       fp8_gpu.launch @fp8_kernels::@fp8_matmul_sm90a_e4m3_e4m3_bf16_row_row_fast_masked_128x64_{{[^ ]*}} #[[OF_ROWS]] ins(%{{.+}}, %{{.+}}, %{{.+}}, %{{.+}}, %arg2 :
func.func @rows(%x: !x, %w: !w, %counts: tensor<4xi32>) -> tensor<4x256x512xbf16> {
  %0 = fp8.grouped_matmul %x, %w counts(%counts : tensor<4xi32>) accumulate = fast
      {fp8_gpu.config = #fp8_sm90.gemm<tile_m = 128, tile_n = 64, stages = 4>} : !x, !w -> tensor<4x256x512xbf16>
  return %0 : tensor<4x256x512xbf16>
}

// CHECK-LABEL: func.func @k
// CHECK:       fp8_gpu.launch @fp8_kernels::@fp8_matmul_sm90a_e5m2_e4m3_f32_tensor_tensor_fast_masked_k_128x128_{{[^ ]*}} #[[OF_K]]
func.func @k(%dy: !dy, %x: !xt, %counts: tensor<4xi32>) -> tensor<4x512x1024xf32> {
  %0 = fp8.grouped_matmul %dy, %x counts_k(%counts : tensor<4xi32>) accumulate = fast
      {fp8_gpu.config = #fp8_sm90.gemm<tile_m = 128, tile_n = 128, stages = 4>} : !dy, !xt -> tensor<4x512x1024xf32>
  return %0 : tensor<4x512x1024xf32>
}

// Rows of A may lie side by side: a tile begins at a multiple of its extent.

// CHECK-LABEL: func.func @rows_innermost
// CHECK:       fp8_gpu.launch {{.+}}_bf16_bf16_bf16_tt_masked_
func.func @rows_innermost(%x: tensor<4x1024x256xbf16>, %w: tensor<4x512x1024xbf16>, %counts: tensor<4xi32>) -> tensor<4x256x512xbf16> {
  %0 = fp8.grouped_matmul %x, %w counts(%counts : tensor<4xi32>) transpose_a accumulate = fast
      : tensor<4x1024x256xbf16>, tensor<4x512x1024xbf16> -> tensor<4x256x512xbf16>
  return %0 : tensor<4x256x512xbf16>
}

// The choice is for as many rows as may be expected, or for all.

// CHECK-LABEL: func.func @expected
// CHECK:       fp8_gpu.launch {{.+}}_masked_undef_padding_{{[^ ]*}}_swap_
// CHECK:       fp8_gpu.launch {{.+}}_masked_undef_padding_128x
func.func @expected(%x: tensor<4x4096x1024xbf16>, %w: tensor<4x4096x1024xbf16>, %counts: tensor<4xi32>)
    -> (tensor<4x4096x4096xbf16>, tensor<4x4096x4096xbf16>) {
  %0 = fp8.grouped_matmul %x, %w counts(%counts : tensor<4xi32>) undef_padding accumulate = fast {expected_m = 8}
      : tensor<4x4096x1024xbf16>, tensor<4x4096x1024xbf16> -> tensor<4x4096x4096xbf16>
  %1 = fp8.grouped_matmul %x, %w counts(%counts : tensor<4xi32>) undef_padding accumulate = fast
      : tensor<4x4096x1024xbf16>, tensor<4x4096x1024xbf16> -> tensor<4x4096x4096xbf16>
  return %0, %1 : tensor<4x4096x4096xbf16>, tensor<4x4096x4096xbf16>
}

// What is expected of a group, also of one alone, is no exact number: 256x128
// makes one round of tiles for exactly 1024 rows, and two for a few more.

!x1 = !fp8.scaled<1024x7168xf8E4M3FN, block = [1, 128], scale = f32>
!w1 = !fp8.scaled<4096x7168xf8E4M3FN, block = [128, 128], scale = f32>
!xc = !fp8.scaled<1x4096x7168xf8E4M3FN, block = [1, 1, 128], scale = f32>
!wc = !fp8.scaled<1x4096x7168xf8E4M3FN, block = [1, 128, 128], scale = f32>

// CHECK-LABEL: func.func @one
// CHECK:       fp8_gpu.launch @fp8_kernels::@fp8_matmul_sm90a_e4m3_e4m3_bf16_1x128_128x128_promote_256x128_
// CHECK:       fp8_gpu.launch @fp8_kernels::@fp8_matmul_sm90a_e4m3_e4m3_bf16_1x128_128x128_promote_masked_undef_padding_128x128_
func.func @one(%x1: !x1, %w1: !w1, %xc: !xc, %wc: !wc, %counts: tensor<1xi32>)
    -> (tensor<1024x4096xbf16>, tensor<1x4096x4096xbf16>) {
  %0 = fp8.matmul %x1, %w1 : !x1, !w1 -> tensor<1024x4096xbf16>
  %1 = fp8.grouped_matmul %xc, %wc counts(%counts : tensor<1xi32>) undef_padding {expected_m = 1024} : !xc, !wc -> tensor<1x4096x4096xbf16>
  return %0, %1 : tensor<1024x4096xbf16>, tensor<1x4096x4096xbf16>
}

// Rows that are not there are cleared, 16 bytes at a time, unless they may be
// anything.

// PTX-LABEL: .visible .entry {{.+}}_masked_128x64_
// PTX:       griddepcontrol.wait
// PTX:       ld.global
// PTX:       st.shared
// PTX:       bar.sync
// PTX:       st.global.v4
// PTX-LABEL: .visible .entry {{.+}}_masked_k_
// PTX-LABEL: .visible .entry {{.+}}_masked_undef_padding_128x
// PTX-NOT:   st.global.v4
