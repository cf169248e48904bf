// RUN: fp8-opt --fp8-set-target=chip=sm_90a --fp8-build-kernels --canonicalize --split-input-file --verify-diagnostics %s | FileCheck %s

// Codes with factors of a byte as B, which is the tensor core's rows here: a
// warp copies a word of factors for each row, others make bf16 of them.

!w = !fp8.scaled<64x256xf8E4M3FN, block = [1, 32], scale = f8E8M0FNU>
func.func @mxfp8(%a: tensor<8x256xbf16>, %w: !w) -> tensor<8x64xbf16> {
  %b = fp8.dequantize %w {fp8.folded} : !w -> tensor<64x256xbf16>
  %0 = fp8.matmul %a, %b accumulate = fast
    {fp8_gpu.config = #fp8_sm90.gemm<tile_m = 8, tile_n = 64, stages = 2, consumers = 1, swap_ab = true, store = direct, lift_warps = 2>}
    : tensor<8x256xbf16>, tensor<64x256xbf16> -> tensor<8x64xbf16>
  return %0 : tensor<8x64xbf16>
}

// CHECK: #launch = #fp8_gpu.launch<arguments = [#fp8_gpu.argument<name = "a", element = bf16, rank = 2, access = read, alignment = 16>, #fp8_gpu.argument<name = "b", element = f8E4M3FN, rank = 2, access = read, alignment = 16>, #fp8_gpu.argument<name = "scale_b", element = f8E8M0FNU, rank = 2, access = read, alignment = 4>
// CHECK-LABEL: llvm.func @fp8_matmul_sm90a_bf16_mxfp8_bf16_nt_8x64
// CHECK:     nvvm.wgmma.mma_async
// CHECK-COUNT-2: nvvm.cp.async.bulk.tensor.shared.cluster.global
// CHECK:     nvvm.cp.async.shared.global {{.*}}, 4,
// CHECK:     nvvm.cp.async.mbarrier.arrive
// A lane's 16 codes, its factor, and the factor's bf16.
// CHECK:     llvm.load {{.*}} -> vector<4xi32>
// CHECK:     llvm.load {{.*}} -> i8
// CHECK:     llvm.load {{.*}} -> i32
// CHECK:     nvvm.prmt
// CHECK:     llvm.fmul {{.*}} : vector<2xbf16>
// CHECK:     llvm.store {{.*}} : vector<4xi32>
// CHECK:     nvvm.fence.proxy
// CHECK:     nvvm.mbarrier.arrive

// -----

!w = !fp8.scaled<64x256xf4E2M1FN, block = [1, 16], scale = f8E4M3FN, tensor_scale = f32>
func.func @nvfp4(%a: tensor<8x256xbf16>, %c: tensor<64x256xf4E2M1FN>, %f: tensor<64x16xf8E4M3FN>) -> tensor<8x64xbf16> {
  %one = arith.constant dense<1.0> : tensor<1x1xf32>
  %w = fp8.assemble %c, %f, %one : tensor<64x256xf4E2M1FN>, tensor<64x16xf8E4M3FN>, tensor<1x1xf32> -> !w
  %b = fp8.dequantize %w {fp8.folded} : !w -> tensor<64x256xbf16>
  %0 = fp8.matmul %a, %b accumulate = fast
    {fp8_gpu.config = #fp8_sm90.gemm<tile_m = 8, tile_n = 64, stages = 2, consumers = 1, swap_ab = true, store = direct>}
    : tensor<8x256xbf16>, tensor<64x256xbf16> -> tensor<8x64xbf16>
  return %0 : tensor<8x64xbf16>
}

// CHECK: #fp8_gpu.argument<name = "b", element = i8, rank = 2, access = read, alignment = 16>, #fp8_gpu.argument<name = "scale_b", element = f8E4M3FN, rank = 2
// CHECK-LABEL: llvm.func @fp8_matmul_sm90a_bf16_nvfp4_bf16_nt_8x64
// CHECK:     llvm.load {{.*}} -> vector<2xi32>

// -----

// Without lifters those who multiply make bf16 of codes, in the registers that
// wgmma takes A from. Nothing is written to shared memory but factors' bf16.

!w = !fp8.scaled<64x256xf8E4M3FN, block = [1, 32], scale = f8E8M0FNU>
func.func @registers(%a: tensor<8x256xbf16>, %w: !w) -> tensor<8x64xbf16> {
  %b = fp8.dequantize %w {fp8.folded} : !w -> tensor<64x256xbf16>
  %0 = fp8.matmul %a, %b accumulate = fast
    {fp8_gpu.config = #fp8_sm90.gemm<tile_m = 8, tile_n = 64, stages = 2, consumers = 1, swap_ab = true, store = direct, lifters = 0>}
    : tensor<8x256xbf16>, tensor<64x256xbf16> -> tensor<8x64xbf16>
  return %0 : tensor<8x64xbf16>
}

// CHECK-LABEL: llvm.func @fp8_matmul_sm90a_bf16_mxfp8_bf16_nt_8x64_s2c1_swap_registers
// CHECK-NOT: vector<4xi32>
// CHECK:     nvvm.convert.f8x2.to.f16x2
// CHECK:     llvm.fmul {{.*}} : vector<2xbf16>
// CHECK-NOT: nvvm.wgmma.mma_async
// CHECK:     llvm.inline_asm {{.*}}wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16
// CHECK:     llvm.inline_asm {{.*}}wgmma.wait_group

// -----

// A stage of four K blocks: one wait, one copy of codes and four of tokens, and
// a word of factors for each row and block, which four lanes bring together.

!w = !fp8.scaled<64x512xf4E2M1FN, block = [1, 32], scale = f8E8M0FNU>
func.func @wide(%a: tensor<8x512xbf16>, %w: !w) -> tensor<8x64xbf16> {
  %b = fp8.dequantize %w {fp8.folded} : !w -> tensor<64x512xbf16>
  %0 = fp8.matmul %a, %b accumulate = fast
    {fp8_gpu.config = #fp8_sm90.gemm<tile_m = 8, tile_n = 64, stages = 2, consumers = 1, swap_ab = true, store = direct, lifters = 0, stage_blocks = 4>}
    : tensor<8x512xbf16>, tensor<64x512xbf16> -> tensor<8x64xbf16>
  return %0 : tensor<8x64xbf16>
}

// CHECK-LABEL: llvm.func @fp8_matmul_sm90a_bf16_mxfp4_bf16_nt_8x64_s2c1_swap_registers_b4
// CHECK:     nvvm.mbarrier.try_wait
// CHECK-COUNT-4: llvm.inline_asm {{.*}}wgmma.mma_async
// CHECK-NOT: nvvm.mbarrier.try_wait
// CHECK:     llvm.inline_asm {{.*}}wgmma.mma_async
// CHECK-COUNT-5: nvvm.cp.async.bulk.tensor.shared.cluster.global
// CHECK-COUNT-8: nvvm.cp.async.shared.global {{.*}}, 4,
// CHECK:     nvvm.cp.async.mbarrier.arrive

// -----

!a = !fp8.scaled<8x512xf8E4M3FN, block = [1, *], scale = f32>
!b = !fp8.scaled<64x512xf8E4M3FN, block = [1, *], scale = f32>
func.func @promoted(%a: !a, %c: tensor<64x512xf4E2M1FN>, %e: tensor<4x64xi32>, %s: tensor<64x1xf32>) -> tensor<8x64xbf16> {
  %l = fp8.lift %c, %e folded : tensor<64x512xf4E2M1FN>, tensor<4x64xi32> -> tensor<64x512xf8E4M3FN>
  %b = fp8.assemble %l, %s : tensor<64x512xf8E4M3FN>, tensor<64x1xf32> -> !b
  // expected-error @below {{expected no promotion with stage_blocks}}
  %0 = fp8.matmul %a, %b accumulate = promote
    {fp8_gpu.config = #fp8_sm90.gemm<tile_m = 8, tile_n = 64, stages = 2, consumers = 1, swap_ab = true, store = direct, lifters = 0, stage_blocks = 2>}
    : !a, !b -> tensor<8x64xbf16>
  return %0 : tensor<8x64xbf16>
}

// -----

!w = !fp8.scaled<64x256xf8E4M3FN, block = [1, 32], scale = f8E8M0FNU>
func.func @bytes(%a: tensor<8x256xbf16>, %w: !w) -> tensor<8x64xbf16> {
  %b = fp8.dequantize %w {fp8.folded} : !w -> tensor<64x256xbf16>
  // expected-error @below {{expected packed weights of whose codes a stage's K has up to 128 bytes with stage_blocks}}
  %0 = fp8.matmul %a, %b accumulate = fast
    {fp8_gpu.config = #fp8_sm90.gemm<tile_m = 8, tile_n = 64, stages = 2, consumers = 1, swap_ab = true, store = direct, lifters = 0, stage_blocks = 4>}
    : tensor<8x256xbf16>, tensor<64x256xbf16> -> tensor<8x64xbf16>
  return %0 : tensor<8x64xbf16>
}

// -----

!w = !fp8.scaled<64x256xf8E4M3FN, block = [1, 32], scale = f8E8M0FNU>
func.func @parts(%a: tensor<8x256xbf16>, %w: !w) -> tensor<8x64xbf16> {
  %b = fp8.dequantize %w {fp8.folded} : !w -> tensor<64x256xbf16>
  // expected-error @below {{expected each part of K to have some}}
  %0 = fp8.matmul %a, %b accumulate = fast
    {fp8_gpu.config = #fp8_sm90.gemm<tile_m = 8, tile_n = 64, stages = 2, consumers = 1, split_k = 5, swap_ab = true, store = direct, lifters = 0>}
    : tensor<8x256xbf16>, tensor<64x256xbf16> -> tensor<8x64xbf16>
  return %0 : tensor<8x64xbf16>
}

// -----

// Blocks of K have 64 elements of bf16.

!w = !fp8.scaled<64x96xf8E4M3FN, block = [1, 32], scale = f8E8M0FNU>
func.func @words(%a: tensor<8x96xbf16>, %w: !w) -> tensor<8x64xbf16> {
  %b = fp8.dequantize %w {fp8.folded} : !w -> tensor<64x96xbf16>
  // expected-error @below {{expected K to be a multiple of 64 for packed weights with factors along K, but got 96}}
  %0 = fp8.matmul %a, %b accumulate = fast
    {fp8_gpu.config = #fp8_sm90.gemm<tile_m = 8, tile_n = 64, stages = 2, consumers = 1, swap_ab = true, store = direct>}
    : tensor<8x96xbf16>, tensor<64x96xbf16> -> tensor<8x64xbf16>
  return %0 : tensor<8x64xbf16>
}

// -----

// Factors of every other row begin within a word, and those of each expert alike
// where there is an even number of rows.

!w = !fp8.scaled<65x192xf8E4M3FN, block = [1, 32], scale = f8E8M0FNU>
func.func @odd_rows(%a: tensor<8x192xbf16>, %w: !w) -> tensor<8x65xbf16> {
  %b = fp8.dequantize %w {fp8.folded} : !w -> tensor<65x192xbf16>
  // expected-error @below {{expected N to be even where K is no multiple of 128, of which packed weights have a word of factors, but got 65}}
  %0 = fp8.matmul %a, %b accumulate = fast
    {fp8_gpu.config = #fp8_sm90.gemm<tile_m = 8, tile_n = 64, stages = 2, consumers = 1, swap_ab = true, store = direct>}
    : tensor<8x192xbf16>, tensor<65x192xbf16> -> tensor<8x65xbf16>
  return %0 : tensor<8x65xbf16>
}

// -----

// Factors of 128x128 are no powers of two: products are those of f32, and
// rounded, as they are of codes that become f16.

!w = !fp8.scaled<64x256xf8E4M3FN, block = [128, 128], scale = f32>
func.func @blocks(%a: tensor<8x256xbf16>, %w: !w) -> tensor<8x64xbf16> {
  %b = fp8.dequantize %w {fp8.folded} : !w -> tensor<64x256xbf16>
  %0 = fp8.matmul %a, %b accumulate = fast
    {fp8_gpu.config = #fp8_sm90.gemm<tile_m = 8, tile_n = 64, stages = 2, consumers = 1, swap_ab = true, store = direct, lifters = 0>}
    : tensor<8x256xbf16>, tensor<64x256xbf16> -> tensor<8x64xbf16>
  return %0 : tensor<8x64xbf16>
}

// CHECK-LABEL: llvm.func @fp8_matmul_sm90a_bf16_e4m3blocks_bf16_nt_8x64
// CHECK:     nvvm.convert.f8x2.to.f16x2
// CHECK-NOT: llvm.fmul {{.*}} : vector<2xbf16>
// CHECK:     arith.mulf {{.*}} : f32
// CHECK:     nvvm.convert.f32x2.to.bf16x2
// CHECK-NOT: llvm.fmul {{.*}} : vector<2xbf16>
// CHECK:     wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16

// -----

!w = !fp8.scaled<64x256xf8E4M3FN, block = [1, 32], scale = f8E8M0FNU>
func.func @half_precision(%a: tensor<8x256xf16>, %w: !w) -> tensor<8x64xf16> {
  %b = fp8.dequantize %w {fp8.folded} : !w -> tensor<64x256xf16>
  %0 = fp8.matmul %a, %b accumulate = fast
    {fp8_gpu.config = #fp8_sm90.gemm<tile_m = 8, tile_n = 64, stages = 2, consumers = 1, swap_ab = true, store = direct, lifters = 0>}
    : tensor<8x256xf16>, tensor<64x256xf16> -> tensor<8x64xf16>
  return %0 : tensor<8x64xf16>
}

// CHECK-LABEL: llvm.func @fp8_matmul_sm90a_f16_mxfp8_f16_nt_8x64
// CHECK:     nvvm.convert.f8x2.to.f16x2
// CHECK:     arith.mulf {{.*}} : f32
// CHECK:     nvvm.convert.f32x2.to.f16x2
// CHECK:     wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16

// -----

// Lifters know neither.

!w = !fp8.scaled<64x256xf8E4M3FN, block = [128, 128], scale = f32>
func.func @lifters(%a: tensor<8x256xbf16>, %w: !w) -> tensor<8x64xbf16> {
  %b = fp8.dequantize %w {fp8.folded} : !w -> tensor<64x256xbf16>
  // expected-error @below {{expected lifters = 0 with weights that are arranged and become bf16, have factors of 128 rows or become f16}}
  %0 = fp8.matmul %a, %b accumulate = fast
    {fp8_gpu.config = #fp8_sm90.gemm<tile_m = 8, tile_n = 64, stages = 2, consumers = 1, swap_ab = true, store = direct>}
    : tensor<8x256xbf16>, tensor<64x256xbf16> -> tensor<8x64xbf16>
  return %0 : tensor<8x64xbf16>
}
