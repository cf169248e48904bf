// RUN: fp8-opt --fp8-set-target=chip=sm_90a --fp8-build-kernels --canonicalize --split-input-file --verify-diagnostics %s | FileCheck %s

// Packed weights as B, which is the tensor core's rows here: codes, exponents
// and then factors. Two stages of 8192 bytes of E4M3, 1024 of A, 4096 of codes
// and 256 of exponents.

!x = !fp8.scaled<8x256xf8E4M3FN, block = [1, *], scale = f32>
!w = !fp8.scaled<64x256xf8E4M3FN, block = [1, *], scale = f32>
func.func @matmul(%a: !x, %p: tensor<64x256xf4E2M1FN>, %e: tensor<2x64xi32>, %s: tensor<64x1xf32>) -> tensor<8x64xbf16> {
  %l = fp8.lift %p, %e folded : tensor<64x256xf4E2M1FN>, tensor<2x64xi32> -> tensor<64x256xf8E4M3FN>
  %b = fp8.assemble %l, %s : tensor<64x256xf8E4M3FN>, tensor<64x1xf32> -> !w
  %0 = fp8.matmul %a, %b accumulate = fast
    {fp8_gpu.config = #fp8_sm90.gemm<tile_m = 8, tile_n = 64, stages = 2, consumers = 1, swap_ab = true, store = direct, lift_warps = 2>}
    : !x, !w -> tensor<8x64xbf16>
  return %0 : tensor<8x64xbf16>
}

// CHECK-LABEL: llvm.func @fp8_matmul_sm90a_e4m3_mxfp4_bf16_row_row_fast_8x64
// Sixteen threads write an entry of the table each.
// CHECK:     nvvm.fence.mbarrier.init
// CHECK:     nvvm.fence.mbarrier.init
// CHECK:     llvm.store {{.*}} : i32, !llvm.ptr<3>
// CHECK:     llvm.store {{.*}} : i32, !llvm.ptr<3>
// CHECK:     nvvm.barrier
// CHECK:     nvvm.setmaxregister increase 232
// CHECK:     nvvm.wgmma.mma_async
// CHECK:     nvvm.setmaxregister decrease 40
// Rows of 64 bytes, of 128 codes, and a word for each row.
// CHECK-COUNT-3: nvvm.cp.async.bulk.tensor.shared.cluster.global
// CHECK:     nvvm.setmaxregister decrease 96
// A lane's 16 bytes and its exponent; four permutations for eight codes.
// CHECK:     llvm.load {{.*}} -> vector<4xi32>
// CHECK:     llvm.load {{.*}} -> i8
// CHECK:     llvm.load {{.*}} -> vector<2xi32>
// CHECK-COUNT-16: nvvm.prmt
// CHECK:     llvm.store {{.*}} : vector<4xi32>
// CHECK:     nvvm.fence.proxy
// CHECK:     nvvm.bar.warp.sync
// CHECK:     nvvm.mbarrier.arrive

// -----

!x = !fp8.scaled<8x256xf8E4M3FN, block = [1, *], scale = f32>
!w = !fp8.scaled<64x256xf8E4M3FN, block = [1, *], scale = f32>
func.func @turns(%a: !x, %p: tensor<64x256xf4E2M1FN>, %e: tensor<2x64xi32>, %s: tensor<64x1xf32>) -> tensor<8x64xbf16> {
  %l = fp8.lift %p, %e folded : tensor<64x256xf4E2M1FN>, tensor<2x64xi32> -> tensor<64x256xf8E4M3FN>
  %b = fp8.assemble %l, %s : tensor<64x256xf8E4M3FN>, tensor<64x1xf32> -> !w
  // expected-error @below {{expected each stage to be lifted by the same warps in every round, but got 3 stages that 2 take turns with}}
  %0 = fp8.matmul %a, %b accumulate = fast
    {fp8_gpu.config = #fp8_sm90.gemm<tile_m = 8, tile_n = 64, stages = 3, consumers = 1, swap_ab = true, store = direct, lift_warps = 2>}
    : !x, !w -> tensor<8x64xbf16>
  return %0 : tensor<8x64xbf16>
}

// -----

// 640 threads begin with 102 registers each by division, and 96 in truth.

!x = !fp8.scaled<128x256xf8E4M3FN, block = [1, *], scale = f32>
!w = !fp8.scaled<144x256xf8E4M3FN, block = [1, *], scale = f32>
func.func @registers(%a: !x, %p: tensor<144x256xf4E2M1FN>, %e: tensor<2x144xi32>, %s: tensor<144x1xf32>) -> tensor<128x144xbf16> {
  %l = fp8.lift %p, %e folded : tensor<144x256xf4E2M1FN>, tensor<2x144xi32> -> tensor<144x256xf8E4M3FN>
  %b = fp8.assemble %l, %s : tensor<144x256xf8E4M3FN>, tensor<144x1xf32> -> !w
  // expected-error @below {{expected an instruction to write up to 70 registers of 640 threads, but #fp8_sm90.gemm<tile_m = 128, tile_n = 144, stages = 4, lifters = 2> writes 72}}
  %0 = fp8.matmul %a, %b accumulate = fast
    {fp8_gpu.config = #fp8_sm90.gemm<tile_m = 128, tile_n = 144, stages = 4, lifters = 2>}
    : !x, !w -> tensor<128x144xbf16>
  return %0 : tensor<128x144xbf16>
}

// -----

// Nothing is lifted.

!x = !fp8.scaled<8x256xf8E4M3FN, block = [1, *], scale = f32>
!w = !fp8.scaled<64x256xf8E4M3FN, block = [1, *], scale = f32>
func.func @none(%a: !x, %b: !w) -> tensor<8x64xbf16> {
  // expected-error @below {{expected packed weights with lifters}}
  %0 = fp8.matmul %a, %b accumulate = fast
    {fp8_gpu.config = #fp8_sm90.gemm<tile_m = 8, tile_n = 64, stages = 2, consumers = 1, swap_ab = true, store = direct, lifters = 2>}
    : !x, !w -> tensor<8x64xbf16>
  return %0 : tensor<8x64xbf16>
}

// -----

// Those who multiply make E4M3, too, in registers, and two of them share K: the
// first one adds what the other has left in shared memory.

!x = !fp8.scaled<8x256xf8E4M3FN, block = [1, *], scale = f32>
!w = !fp8.scaled<64x256xf8E4M3FN, block = [1, *], scale = f32>
func.func @registers(%a: !x, %p: tensor<64x256xf4E2M1FN>, %e: tensor<2x64xi32>, %s: tensor<64x1xf32>) -> tensor<8x64xbf16> {
  %l = fp8.lift %p, %e folded : tensor<64x256xf4E2M1FN>, tensor<2x64xi32> -> tensor<64x256xf8E4M3FN>
  %b = fp8.assemble %l, %s : tensor<64x256xf8E4M3FN>, tensor<64x1xf32> -> !w
  %0 = fp8.matmul %a, %b accumulate = fast
    {fp8_gpu.config = #fp8_sm90.gemm<tile_m = 8, tile_n = 64, stages = 4, consumers = 2, swap_ab = true, store = direct, lifters = 0>}
    : !x, !w -> tensor<8x64xbf16>
  return %0 : tensor<8x64xbf16>
}

// CHECK-LABEL: llvm.func @fp8_matmul_sm90a_e4m3_mxfp4_bf16_row_row_fast_8x64_s4c2_swap_registers_g16
// CHECK-COUNT-2: nvvm.prefetch level = L1
// CHECK:     llvm.load {{.*}} -> i16
// CHECK:     nvvm.prmt
// CHECK:     wgmma.mma_async.sync.aligned.m64n8k32.f32.e4m3.e4m3
// CHECK:     wgmma.wait_group.sync.aligned 1
// CHECK:     llvm.store {{.*}} : f32
// CHECK:     nvvm.barrier id
// CHECK:     llvm.load {{.*}} -> f32
// Two threads fill the stages, those of a part each: codes, exponents and A.
// CHECK-COUNT-6: nvvm.cp.async.bulk.tensor.shared.cluster.global

// -----

// Lifters share each K block of a tile.

!x = !fp8.scaled<8x256xf8E4M3FN, block = [1, *], scale = f32>
!w = !fp8.scaled<64x256xf8E4M3FN, block = [1, *], scale = f32>
func.func @codes(%a: !x, %p: tensor<64x256xf4E2M1FN>, %e: tensor<2x64xi32>, %s: tensor<64x1xf32>) -> tensor<8x64xbf16> {
  %l = fp8.lift %p, %e folded : tensor<64x256xf4E2M1FN>, tensor<2x64xi32> -> tensor<64x256xf8E4M3FN>
  %b = fp8.assemble %l, %s : tensor<64x256xf8E4M3FN>, tensor<64x1xf32> -> !w
  // expected-error @below {{expected consumers that share K with factors of 32 of K, or without lifters, and as many stages for each}}
  %0 = fp8.matmul %a, %b accumulate = fast
    {fp8_gpu.config = #fp8_sm90.gemm<tile_m = 8, tile_n = 64, stages = 4, consumers = 2, swap_ab = true, store = direct>}
    : !x, !w -> tensor<8x64xbf16>
  return %0 : tensor<8x64xbf16>
}

// -----

// A stage is given back once the words of the next one are made.

!x = !fp8.scaled<8x1024xf8E4M3FN, block = [1, *], scale = f32>
!w = !fp8.scaled<64x1024xf8E4M3FN, block = [1, *], scale = f32>
func.func @one_stage(%a: !x, %p: tensor<64x1024xf4E2M1FN>, %e: tensor<8x64xi32>, %s: tensor<64x1xf32>) -> tensor<8x64xbf16> {
  %l = fp8.lift %p, %e folded : tensor<64x1024xf4E2M1FN>, tensor<8x64xi32> -> tensor<64x1024xf8E4M3FN>
  %b = fp8.assemble %l, %s : tensor<64x1024xf8E4M3FN>, tensor<64x1xf32> -> !w
  // expected-error @below {{expected two stages for each consumer that lifts or transposes in registers and has a part of K}}
  %0 = fp8.matmul %a, %b accumulate = fast
    {fp8_gpu.config = #fp8_sm90.gemm<tile_m = 8, tile_n = 64, stages = 4, consumers = 4, swap_ab = true, store = direct, lifters = 0>}
    : !x, !w -> tensor<8x64xbf16>
  return %0 : tensor<8x64xbf16>
}
