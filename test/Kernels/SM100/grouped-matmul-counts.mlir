// RUN: fp8-opt %s --fp8-set-target=chip=sm_100a --fp8-select-kernels --fp8-build-kernels --fp8-launch-kernels --canonicalize | FileCheck %s
// RUN: fp8-opt %s --fp8-set-target=chip=sm_100a --fp8-select-kernels --fp8-build-kernels | fp8-translate --kernels-to-ptx | FileCheck %s --check-prefix=PTX

!x = !fp8.scaled<4x256x1024xf8E4M3FN, block = [1, 1, *], scale = f32>
!w = !fp8.scaled<4x512x1024xf8E4M3FN, block = [1, 1, *], scale = f32>

// Every argument has a dimension of groups; the grid is for groups that fill
// all that they have room for.

// CHECK-DAG: #[[ROWS:.+]] = affine_map<()[s0, s1, s2, s3] -> (((s0 ceildiv 128) * s3) * (s1 ceildiv 64))>
// CHECK-DAG: #[[OF_ROWS:.+]] = #fp8_gpu.launch<arguments = [#fp8_gpu.argument<name = "a", element = f8E4M3FN, rank = 3, {{.+}}>, #fp8_gpu.argument<name = "scale_a", element = f32, rank = 3, {{.+}}>, #fp8_gpu.argument<name = "b", element = f8E4M3FN, rank = 3, {{.+}}>, #fp8_gpu.argument<name = "scale_b", element = f32, rank = 3, {{.+}}>, #fp8_gpu.argument<name = "counts", element = i32, rank = 1, access = read, alignment = 4>, #fp8_gpu.argument<name = "d", element = bf16, rank = 3, {{.+}}>], extents = [#fp8_gpu.extent<"m", 0, 1>, #fp8_gpu.extent<"n", 2, 1>, #fp8_gpu.extent<"k", 0, 2>, #fp8_gpu.extent<"bounds", 4, 0>], {{.*}}grid = #[[ROWS]],

// CHECK-LABEL: func.func @rows
// CHECK:       fp8_gpu.launch @fp8_kernels::@fp8_matmul_sm100a_e4m3_e4m3_bf16_row_row_fast_masked_128x64_{{[^ ]*}} #[[OF_ROWS]] ins(%{{.+}}, %{{.+}}, %{{.+}}, %{{.+}}, %arg2 :
func.func @rows(%x: !x, %w: !w, %counts: tensor<4xi32>) -> tensor<4x256x512xbf16> {
  %0 = fp8.grouped_matmul %x, %w counts(%counts : tensor<4xi32>) accumulate = fast
      {fp8_gpu.config = #fp8_sm100.gemm<tile_m = 128, tile_n = 64, stages = 4>} : !x, !w -> tensor<4x256x512xbf16>
  return %0 : tensor<4x256x512xbf16>
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
// CHECK:       fp8_gpu.launch {{.+}}_masked_undef_padding_256x
func.func @expected(%x: tensor<4x4096x1024xbf16>, %w: tensor<4x4096x1024xbf16>, %counts: tensor<4xi32>)
    -> (tensor<4x4096x4096xbf16>, tensor<4x4096x4096xbf16>) {
  %0 = fp8.grouped_matmul %x, %w counts(%counts : tensor<4xi32>) undef_padding accumulate = fast {expected_m = 8}
      : tensor<4x4096x1024xbf16>, tensor<4x4096x1024xbf16> -> tensor<4x4096x4096xbf16>
  %1 = fp8.grouped_matmul %x, %w counts(%counts : tensor<4xi32>) undef_padding accumulate = fast
      : tensor<4x4096x1024xbf16>, tensor<4x4096x1024xbf16> -> tensor<4x4096x4096xbf16>
  return %0, %1 : tensor<4x4096x4096xbf16>, tensor<4x4096x4096xbf16>
}

// Rows that are not there are cleared, 16 bytes at a time and by all, unless
// they may be anything.

// PTX-LABEL: .visible .entry {{.+}}_masked_128x64_
// PTX:       griddepcontrol.wait
// PTX:       ld.global
// PTX:       st.shared
// PTX:       bar.sync
// PTX:       st.global.v4.b32
// PTX:       st.global.v2.b64 [%rd{{[0-9]+}}], {%rd[[ZERO:[0-9]+]], %rd[[ZERO]]};
// PTX-LABEL: .visible .entry {{.+}}_masked_undef_padding_256x
// PTX-NOT:   st.global.v2.b64
