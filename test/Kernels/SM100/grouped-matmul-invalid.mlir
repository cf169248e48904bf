// RUN: fp8-opt %s --fp8-set-target=chip=sm_100a --fp8-select-kernels --split-input-file --verify-diagnostics

!x = tensor<256x1024xbf16>
!w = tensor<4x512x1024xbf16>
func.func @split_k(%x: !x, %w: !w, %offsets: tensor<5xi32>) {
  // expected-error @below {{expected no split-K with groups, but got}}
  %0 = fp8.grouped_matmul %x, %w offsets(%offsets : tensor<5xi32>) accumulate = fast
      {fp8_gpu.config = #fp8_sm100.gemm<tile_m = 16, tile_n = 128, stages = 4, split_k = 2, swap_ab = true, store = direct>} : !x, !w -> tensor<256x512xbf16>
  return
}
