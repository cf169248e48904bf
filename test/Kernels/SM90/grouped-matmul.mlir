// RUN: fp8-opt %s --fp8-set-target=chip=sm_90a --fp8-select-kernels --fp8-build-kernels --fp8-launch-kernels --canonicalize | FileCheck %s
// RUN: fp8-opt %s --fp8-set-target=chip=sm_90a --fp8-select-kernels --fp8-build-kernels | fp8-translate --kernels-to-ptx | FileCheck %s --check-prefix=PTX

!x = !fp8.scaled<?x1024xf8E4M3FN, block = [1, *], scale = f32>
!w = !fp8.scaled<4x512x1024xf8E4M3FN, block = [1, 1, *], scale = f32>
!dy = !fp8.scaled<512x?xf8E5M2, block = [*, *], scale = f32>
!xt = !fp8.scaled<1024x?xf8E4M3FN, block = [*, *], scale = f32>

// The grid is for the most tiles that there can be: each group may begin one
// that another's rows would fill.

// CHECK-DAG: #[[ROWS:.+]] = affine_map<()[s0, s1, s2, s3] -> ((s0 ceildiv 128 + s3 - 1) * (s1 ceildiv 64))>
// CHECK-DAG: #[[K:.+]] = affine_map<()[s0, s1, s2, s3] -> (((s0 ceildiv 128) * (s1 ceildiv 128)) * (s3 - 1))>

// CHECK-DAG: #[[OF_ROWS:.+]] = #fp8_gpu.launch<arguments = [#fp8_gpu.argument<name = "a", element = f8E4M3FN, rank = 2, {{.+}}>, #fp8_gpu.argument<name = "scale_a", {{.+}}>, #fp8_gpu.argument<name = "b", element = f8E4M3FN, rank = 3, {{.+}}>, #fp8_gpu.argument<name = "scale_b", element = f32, rank = 3, {{.+}}>, #fp8_gpu.argument<name = "offsets", element = i32, rank = 1, access = read, alignment = 4>, #fp8_gpu.argument<name = "d", element = bf16, rank = 2, {{.+}}>], extents = [#fp8_gpu.extent<"m", 0, 0>, #fp8_gpu.extent<"n", 2, 1>, #fp8_gpu.extent<"k", 0, 1>, #fp8_gpu.extent<"bounds", 4, 0>], {{.*}}grid = #[[ROWS]],
// CHECK-DAG: #[[OF_K:.+]] = #fp8_gpu.launch<{{.+}}#fp8_gpu.argument<name = "d", element = f32, rank = 3, {{.+}}grid = #[[K]],

// CHECK-LABEL: func.func @rows
// CHECK:       fp8_gpu.launch @fp8_kernels::@fp8_matmul_sm90a_e4m3_e4m3_bf16_row_row_fast_grouped_128x64_{{[^ ]*}} #[[OF_ROWS]] ins(%{{.+}}, %{{.+}}, %{{.+}}, %{{.+}}, %arg2 :
func.func @rows(%x: !x, %w: !w, %offsets: tensor<5xi32>) -> tensor<?x512xbf16> {
  %0 = fp8.grouped_matmul %x, %w offsets(%offsets : tensor<5xi32>) accumulate = fast
      {fp8_gpu.config = #fp8_sm90.gemm<tile_m = 128, tile_n = 64, stages = 4>} : !x, !w -> tensor<?x512xbf16>
  return %0 : tensor<?x512xbf16>
}

// CHECK-LABEL: func.func @k
// CHECK:       fp8_gpu.launch @fp8_kernels::@fp8_matmul_sm90a_e5m2_e4m3_f32_tensor_tensor_fast_grouped_k_128x128_{{[^ ]*}} #[[OF_K]]
func.func @k(%dy: !dy, %x: !xt, %offsets: tensor<5xi32>) -> tensor<4x512x1024xf32> {
  %0 = fp8.grouped_matmul %dy, %x offsets(%offsets : tensor<5xi32>) accumulate = fast
      {fp8_gpu.config = #fp8_sm90.gemm<tile_m = 128, tile_n = 128, stages = 4>} : !dy, !xt -> tensor<4x512x1024xf32>
  return %0 : tensor<4x512x1024xf32>
}

// What nobody pins is selected.

// CHECK-LABEL: func.func @selected
// CHECK:       fp8_gpu.launch {{.+}}_bf16_bf16_bf16_nn_grouped_
func.func @selected(%x: tensor<4096x1024xbf16>, %w: tensor<4x1024x512xbf16>, %offsets: tensor<5xi32>) -> tensor<4096x512xbf16> {
  %0 = fp8.grouped_matmul %x, %w offsets(%offsets : tensor<5xi32>) transpose_b accumulate = fast
      : tensor<4096x1024xbf16>, tensor<4x1024x512xbf16> -> tensor<4096x512xbf16>
  return %0 : tensor<4096x512xbf16>
}

// Offsets are read once, to a table, after the kernel before has ended.

// PTX-LABEL: .visible .entry {{.+}}_grouped_128x64_
// PTX:       griddepcontrol.wait
// PTX:       ld.global
// PTX:       st.shared
// PTX:       bar.sync
// How many tiles there are is known to be the same for all.
// PTX:       shfl.sync.idx
// PTX:       setmaxnreg
// PTX-NOT:   .local
