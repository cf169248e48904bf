// RUN: fp8-opt --fp8-set-target=chip=sm_90a --fp8-build-kernels --canonicalize --split-input-file --verify-diagnostics %s | FileCheck %s

// Factors for each 32 of K: of a word with four of them a thread makes bf16
// while four products are under way, which are waited for one after the other.

!a = !fp8.scaled<16x256xf8E4M3FN, block = [1, 32], scale = f8E8M0FNU>
!b = !fp8.scaled<64x256xf8E4M3FN, block = [1, 32], scale = f8E8M0FNU>
func.func @mxfp8(%a: !a, %b: !b) -> tensor<16x64xbf16> {
  %0 = fp8.matmul %a, %b
    {fp8_gpu.config = #fp8_sm90.gemm<tile_m = 16, tile_n = 64, stages = 2, consumers = 1, swap_ab = true, store = direct>}
    : !a, !b -> tensor<16x64xbf16>
  return %0 : tensor<16x64xbf16>
}

// CHECK: #fp8_gpu.argument<name = "scale_a", element = f8E8M0FNU, rank = 2, access = read, alignment = 4>
// CHECK-LABEL: llvm.func @fp8_matmul_sm90a_e4m3_e4m3_bf16_1x32_1x32_promote_16x64
// CHECK-COUNT-4: nvvm.wgmma.mma_async {{.*}}k = 32>{{.*}}<zero>
// CHECK:     llvm.load {{.*}} -> i32
// CHECK:     nvvm.prmt
// CHECK:     llvm.store {{.*}} : vector<2xi32>
// CHECK:     nvvm.barrier
// CHECK-COUNT-2: llvm.load {{.*}} -> vector<2xi32>
// CHECK-COUNT-2: llvm.load {{.*}} -> vector<4xi32>
// CHECK:     wgmma.wait_group.sync.aligned 3;
// CHECK:     llvm.intr.fma
// CHECK:     wgmma.wait_group.sync.aligned 2;
// CHECK:     wgmma.wait_group.sync.aligned 1;
// CHECK:     wgmma.wait_group.sync.aligned 0;
// CHECK-NOT: nvvm.wgmma.mma_async
// CHECK-COUNT-2: nvvm.cp.async.shared.global {{.*}}, 4,
// CHECK:     nvvm.cp.async.mbarrier.arrive

// -----

!a = !fp8.scaled<64x256xf8E4M3FN, block = [1, 32], scale = f8E8M0FNU>
func.func @not_swapped(%a: !a, %b: !a) -> tensor<64x64xbf16> {
  // expected-error @below {{expected swapped operands, up to 64 rows of A and 64 of B for each consumer with factors of 32 of K, but got #fp8_sm90.gemm<tile_m = 64, tile_n = 64, stages = 2, consumers = 1>}}
  %0 = fp8.matmul %a, %b {fp8_gpu.config = #fp8_sm90.gemm<tile_m = 64, tile_n = 64, stages = 2, consumers = 1>}
    : !a, !a -> tensor<64x64xbf16>
  return %0 : tensor<64x64xbf16>
}

// -----

!a = !fp8.scaled<64x256xf8E4M3FN, block = [1, 32], scale = f8E8M0FNU>
func.func @empty_parts(%a: !a, %b: !a) -> tensor<64x64xbf16> {
  // expected-error @below {{expected each part of K to have some, but got}}
  %0 = fp8.matmul %a, %b {fp8_gpu.config = #fp8_sm90.gemm<tile_m = 16, tile_n = 64, stages = 2, consumers = 1, split_k = 3, swap_ab = true, store = direct>}
    : !a, !a -> tensor<64x64xbf16>
  return %0 : tensor<64x64xbf16>
}

// -----

!a = !fp8.scaled<64x96xf8E4M3FN, block = [1, 32], scale = f8E8M0FNU>
func.func @words(%a: !a, %b: !a) -> tensor<64x64xbf16> {
  // expected-error @below {{expected K to be a multiple of 128, of which there is a word of factors, but got 96}}
  %0 = fp8.matmul %a, %b {fp8_gpu.config = #fp8_sm90.gemm<tile_m = 16, tile_n = 64, stages = 2, consumers = 1, swap_ab = true, store = direct>}
    : !a, !a -> tensor<64x64xbf16>
  return %0 : tensor<64x64xbf16>
}
