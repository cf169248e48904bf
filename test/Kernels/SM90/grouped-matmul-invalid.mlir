// RUN: fp8-opt %s --fp8-set-target=chip=sm_90a --fp8-select-kernels --split-input-file --verify-diagnostics

!x = tensor<256x1024xbf16>
!w = tensor<4x512x1024xbf16>
func.func @split_k(%x: !x, %w: !w, %offsets: tensor<5xi32>) {
  // expected-error @below {{expected no split-K with groups, but got}}
  %0 = fp8.grouped_matmul %x, %w offsets(%offsets : tensor<5xi32>) accumulate = fast
      {fp8_gpu.config = #fp8_sm90.gemm<tile_m = 128, tile_n = 64, stages = 4, split_k = 2>} : !x, !w -> tensor<256x512xbf16>
  return
}

// -----

!dy = tensor<512x1024xbf16>
!x = tensor<256x1024xbf16>
func.func @ping_pong(%dy: !dy, %x: !x, %offsets: tensor<5xi32>) {
  // expected-error @below {{expected the cooperative schedule without overlap and pending products with groups of K, but got}}
  %0 = fp8.grouped_matmul %dy, %x offsets(%offsets : tensor<5xi32>) accumulate = fast
      {fp8_gpu.config = #fp8_sm90.gemm<tile_m = 64, tile_n = 64, stages = 4, schedule = ping_pong>} : !dy, !x -> tensor<4x512x256xf32>
  return
}
