// RUN: fp8-opt %s --fp8-set-target=chip=sm_100a --fp8-select-kernels --fp8-build-kernels --fp8-launch-kernels --canonicalize | FileCheck %s
// RUN: fp8-opt %s --fp8-set-target=chip=sm_100a --fp8-select-kernels --fp8-build-kernels | fp8-translate --kernels-to-ptx | FileCheck %s --check-prefix=PTX

!x = !fp8.scaled<?x1024xf8E4M3FN, block = [1, *], scale = f32>
!w = !fp8.scaled<4x512x1024xf8E4M3FN, block = [1, 1, *], scale = f32>
!m = !fp8.scaled<4096x1024xf8E4M3FN, block = [1, 32], scale = f8E8M0FNU>
!wm = !fp8.scaled<4x512x1024xf8E4M3FN, block = [1, 1, 32], scale = f8E8M0FNU>
!n = !fp8.scaled<4096x1024xf4E2M1FN, block = [1, 16], scale = f8E4M3FN, tensor_scale = f32>
!wn = !fp8.scaled<4x512x1024xf4E2M1FN, block = [1, 1, 16], scale = f8E4M3FN, tensor_scale = f32>
!f = !fp8.scaled<4096x1024xf8E4M3FN, block = [1, 128], scale = f32>
!t = !fp8.scaled<4x512x1024xf8E4M3FN, block = [1, 128, 128], scale = f32>

// The grid is for the most tiles that there can be: each group may begin one
// that another's rows would fill.

// CHECK-DAG: #[[ROWS:.+]] = affine_map<()[s0, s1, s2, s3] -> ((s0 ceildiv 128 + s3 - 1) * (s1 ceildiv 64))>
// CHECK-DAG: #[[PAIRED:.+]] = affine_map<()[s0, s1, s2, s3] -> ((s0 ceildiv 256 + s3 - 1) * (s1 ceildiv 128))>

// CHECK-DAG: #[[OF_ROWS:.+]] = #fp8_gpu.launch<arguments = [#fp8_gpu.argument<name = "a", element = f8E4M3FN, rank = 2, {{.+}}>, #fp8_gpu.argument<name = "scale_a", {{.+}}>, #fp8_gpu.argument<name = "b", element = f8E4M3FN, rank = 3, {{.+}}>, #fp8_gpu.argument<name = "scale_b", element = f32, rank = 3, {{.+}}>, #fp8_gpu.argument<name = "offsets", element = i32, rank = 1, access = read, alignment = 4>, #fp8_gpu.argument<name = "d", element = bf16, rank = 2, {{.+}}>], extents = [#fp8_gpu.extent<"m", 0, 0>, #fp8_gpu.extent<"n", 2, 1>, #fp8_gpu.extent<"k", 0, 1>, #fp8_gpu.extent<"bounds", 4, 0>], {{.*}}grid = #[[ROWS]],
// CHECK-DAG: #[[OF_TWO:.+]] = #fp8_gpu.launch<{{.+}}grid = #[[PAIRED]], {{.+}}cluster = 2,

// CHECK-LABEL: func.func @rows
// CHECK:       fp8_gpu.launch @fp8_kernels::@fp8_matmul_sm100a_e4m3_e4m3_bf16_row_row_fast_grouped_128x64_{{[^ ]*}} #[[OF_ROWS]] ins(%{{.+}}, %{{.+}}, %{{.+}}, %{{.+}}, %arg2 :
func.func @rows(%x: !x, %w: !w, %offsets: tensor<5xi32>) -> tensor<?x512xbf16> {
  %0 = fp8.grouped_matmul %x, %w offsets(%offsets : tensor<5xi32>) accumulate = fast
      {fp8_gpu.config = #fp8_sm100.gemm<tile_m = 128, tile_n = 64, stages = 4>} : !x, !w -> tensor<?x512xbf16>
  return %0 : tensor<?x512xbf16>
}

// Two blocks may multiply a tile together.

// CHECK-LABEL: func.func @paired
// CHECK:       fp8_gpu.launch {{.+}}_grouped_256x128_{{[^ ]*}} #[[OF_TWO]]
func.func @paired(%x: !x, %w: !w, %offsets: tensor<5xi32>) -> tensor<?x512xbf16> {
  %0 = fp8.grouped_matmul %x, %w offsets(%offsets : tensor<5xi32>) accumulate = fast
      {fp8_gpu.config = #fp8_sm100.gemm<tile_m = 256, tile_n = 128, stages = 4, cta_group = 2>} : !x, !w -> tensor<?x512xbf16>
  return %0 : tensor<?x512xbf16>
}

// What nobody pins is selected.

// CHECK-LABEL: func.func @selected
// CHECK:       fp8_gpu.launch {{.+}}_bf16_bf16_bf16_nn_grouped_
func.func @selected(%x: tensor<4096x1024xbf16>, %w: tensor<4x1024x512xbf16>, %offsets: tensor<5xi32>) -> tensor<4096x512xbf16> {
  %0 = fp8.grouped_matmul %x, %w offsets(%offsets : tensor<5xi32>) transpose_b accumulate = fast
      : tensor<4096x1024xbf16>, tensor<4x1024x512xbf16> -> tensor<4096x512xbf16>
  return %0 : tensor<4096x512xbf16>
}

// Factors along K, by the tensor core or in registers.

// CHECK-LABEL: func.func @factors
// CHECK:       fp8_gpu.launch {{.+}}_e4m3_e4m3_bf16_1x32_1x32_promote_grouped_
// CHECK:       fp8_gpu.launch {{.+}}_e2m1_e2m1_bf16_1x16_1x16_promote_grouped_
// CHECK:       fp8_gpu.launch {{.+}}_e4m3_e4m3_bf16_1x128_128x128_promote_grouped_
func.func @factors(%m: !m, %wm: !wm, %n: !n, %wn: !wn, %f: !f, %t: !t, %offsets: tensor<5xi32>)
    -> (tensor<4096x512xbf16>, tensor<4096x512xbf16>, tensor<4096x512xbf16>) {
  %0 = fp8.grouped_matmul %m, %wm offsets(%offsets : tensor<5xi32>) : !m, !wm -> tensor<4096x512xbf16>
  %1 = fp8.grouped_matmul %n, %wn offsets(%offsets : tensor<5xi32>) : !n, !wn -> tensor<4096x512xbf16>
  %2 = fp8.grouped_matmul %f, %t offsets(%offsets : tensor<5xi32>) : !f, !t -> tensor<4096x512xbf16>
  return %0, %1, %2 : tensor<4096x512xbf16>, tensor<4096x512xbf16>, tensor<4096x512xbf16>
}

// Groups of few rows take few: a tile's rows are the side that shrinks.

// CHECK-LABEL: func.func @few
// CHECK:       fp8_gpu.launch {{.+}}_grouped_16x128_{{[^ ]*}}_swap_
func.func @few(%x: tensor<64x1024xbf16>, %w: tensor<16x512x1024xbf16>, %offsets: tensor<17xi32>) -> tensor<64x512xbf16> {
  %0 = fp8.grouped_matmul %x, %w offsets(%offsets : tensor<17xi32>) accumulate = fast
      : tensor<64x1024xbf16>, tensor<16x512x1024xbf16> -> tensor<64x512xbf16>
  return %0 : tensor<64x512xbf16>
}

// Also where memory is the limit of all that there is to choose from.

// CHECK-LABEL: func.func @many
// CHECK:       fp8_gpu.launch {{.+}}_grouped_16x128_{{[^ ]*}}_swap_
func.func @many(%x: tensor<8192x1024xbf16>, %w: tensor<1024x512x1024xbf16>, %offsets: tensor<1025xi32>) -> tensor<8192x512xbf16> {
  %0 = fp8.grouped_matmul %x, %w offsets(%offsets : tensor<1025xi32>) accumulate = fast
      : tensor<8192x1024xbf16>, tensor<1024x512x1024xbf16> -> tensor<8192x512xbf16>
  return %0 : tensor<8192x512xbf16>
}

// Offsets are read once, to a table, after the kernel before has ended. A tile
// that ends where its group does is stored by rows, 16 bytes at a time, and
// rows of no group are cleared.

// PTX-LABEL: .visible .entry {{.+}}_grouped_128x64_
// PTX:       tcgen05.alloc
// PTX:       griddepcontrol.wait
// PTX:       ld.global
// PTX:       st.shared
// PTX:       bar.sync
// PTX:       cp.async.bulk.tensor.2d.shared
// PTX:       cp.async.bulk.tensor.3d.shared
// PTX:       tcgen05.mma
// PTX-DAG:   st.global.v4.b32
// PTX-DAG:   cp.async.bulk.tensor.2d.global
// PTX:       st.global.v2.b64 [%rd{{[0-9]+}}], {%rd[[ZERO:[0-9]+]], %rd[[ZERO]]};
// PTX-NOT:   .local
