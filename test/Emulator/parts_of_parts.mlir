// Consumers have parts of K of each block's part. They begin where so many parts of split_k would, also where these do not
// divide the K blocks of a block; and with stages of several K blocks, of MXFP4 with the last one out of K.
// RUN: %python %S/../Integration/CUDA/Inputs/tensors.py %t.in x=bf16:24x704 v=bf16:128x704 w=bf16:128x704
// RUN: fp8-run %s --recipe=none --inputs=%t.in --target=sm_90a --device=emulator --check=all --compare=cpu --accumulate=tensor-core --tolerance=0 | FileCheck %s
// REQUIRES: linker
// UNSUPPORTED: sanitizers

// CHECK: parts: {{.*}} 0 of 3072 elements differ
// CHECK: stages: {{.*}} 0 of 3072 elements differ
// CHECK: cluster: {{.*}} 0 of 3072 elements differ
#mx = #fp8_sm90.gemm<tile_m = 8, tile_n = 64, stages = 8, consumers = 4, split_k = 2, swap_ab = true, store = direct, group = 1, lifters = 0>
#wide = #fp8_sm90.gemm<tile_m = 8, tile_n = 64, stages = 4, consumers = 1, split_k = 2, swap_ab = true, store = direct, group = 1, lifters = 0, stage_blocks = 4>
#cluster = #fp8_sm90.gemm<tile_m = 24, tile_n = 128, stages = 3, consumers = 2, split_k = 4, swap_ab = true, store = direct, group = 1, lifters = 0, stage_blocks = 2, cluster_k = true>
func.func @f(%x: tensor<24x704xbf16> {fp8.name = "x"}, %v: tensor<128x704xbf16> {fp8.name = "v"}, %w: tensor<128x704xbf16> {fp8.name = "w"})
    -> (tensor<24x128xf32> {fp8.name = "parts"}, tensor<24x128xf32> {fp8.name = "stages"}, tensor<24x128xf32> {fp8.name = "cluster"}) {
  %0 = fp8.amax %v block = [1, 32] : tensor<128x704xbf16>
  %s, %i = fp8.compute_scale %0 format = f8E4M3FN scale_type = f8E8M0FNU : tensor<128x22xf32>
  %q = fp8.quantize %v scale(%s, %i : tensor<128x22xf32>, tensor<128x22xf8E8M0FNU>) : tensor<128x704xbf16> -> <128x704xf8E4M3FN, block = [1, 32], scale = f8E8M0FNU>
  %b = fp8.dequantize %q {fp8.folded} : !fp8.scaled<128x704xf8E4M3FN, block = [1, 32], scale = f8E8M0FNU> -> tensor<128x704xbf16>
  %1 = fp8.amax %w block = [1, 32] : tensor<128x704xbf16>
  %t, %j = fp8.compute_scale %1 format = f4E2M1FN scale_type = f8E8M0FNU : tensor<128x22xf32>
  %r = fp8.quantize %w scale(%t, %j : tensor<128x22xf32>, tensor<128x22xf8E8M0FNU>) : tensor<128x704xbf16> -> <128x704xf4E2M1FN, block = [1, 32], scale = f8E8M0FNU>
  %c = fp8.dequantize %r {fp8.folded} : !fp8.scaled<128x704xf4E2M1FN, block = [1, 32], scale = f8E8M0FNU> -> tensor<128x704xbf16>
  %parts = fp8.matmul %x, %b accumulate = fast {fp8_gpu.config = #mx} : tensor<24x704xbf16>, tensor<128x704xbf16> -> tensor<24x128xf32>
  %stages = fp8.matmul %x, %c accumulate = fast {fp8_gpu.config = #wide} : tensor<24x704xbf16>, tensor<128x704xbf16> -> tensor<24x128xf32>
  %cluster = fp8.matmul %x, %c accumulate = fast {fp8_gpu.config = #cluster} : tensor<24x704xbf16>, tensor<128x704xbf16> -> tensor<24x128xf32>
  return %parts, %stages, %cluster : tensor<24x128xf32>, tensor<24x128xf32>, tensor<24x128xf32>
}
