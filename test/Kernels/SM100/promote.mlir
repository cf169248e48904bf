// RUN: fp8-opt --fp8-set-target=chip=sm_100a --fp8-build-kernels %s | fp8-translate --kernels-to-ptx | FileCheck %s

// Factors in f32 along K: each K block has sums to itself, which two
// warpgroups multiply and add up in registers.

!x = !fp8.scaled<?x4096xf8E4M3FN, block = [1, 128], scale = f32>
!w = !fp8.scaled<4096x4096xf8E5M2, block = [128, 128], scale = f32>

// Two stages of 16384 + 8192 bytes, two buffers of 16384; eight stages of 128
// factors of rows, from 81920 on, and of one of columns, at 86016; then
// barriers: of two stages, of four sets of sums, of eight stages of factors.

// CHECK-LABEL: .visible .entry fp8_matmul_sm100a_e4m3_e5m2_bf16_1x128_128x128_promote_128x64_s2f2_stage1_g16
// CHECK:       .reqntid 384, 1, 1

// Eight warps take sums and factors, of which each lane of one has copied some.
// CHECK:       mbarrier.init.shared.b64 	[fp8_shared+86176], %{{.*}};
// CHECK-NEXT:  mov.b32 	%[[WARPS:r[0-9]+]], 8;
// CHECK-NEXT:  mbarrier.init.shared.b64 	[fp8_shared+86208], %[[WARPS]];
// CHECK:       mbarrier.init.shared.b64 	[fp8_shared+86232], %[[WARPS]];
// CHECK:       mov.b32 	%[[LANES:r[0-9]+]], 32;
// CHECK-NEXT:  mbarrier.init.shared.b64 	[fp8_shared+86240], %[[LANES]];
// CHECK-NEXT:  mbarrier.init.shared.b64 	[fp8_shared+86304], %[[WARPS]];
// CHECK:       mbarrier.init.shared.b64 	[fp8_shared+86296], %[[LANES]];
// CHECK-NEXT:  mbarrier.init.shared.b64 	[fp8_shared+86360], %[[WARPS]];

// Four sets of 64 columns.
// CHECK:       mov.b32 	%[[COLUMNS:r[0-9]+]], 256;
// CHECK-NEXT:  tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 	[fp8_shared+86368], %[[COLUMNS]];

// CHECK:       setmaxnreg.dec.sync.aligned.u32 	40;
// CHECK:       mbarrier.arrive.expect_tx
// CHECK:       setmaxnreg.inc.sync.aligned.u32 	232;

// A row's factor and a block's, each sum by one rounding; sums are given back
// before the last are added, factors after.
// CHECK:       mbarrier.try_wait
// CHECK:       mbarrier.try_wait
// CHECK:       tcgen05.fence::after_thread_sync;
// CHECK:       ld.shared.b32
// CHECK:       ld.shared.b32
// CHECK-NOT:   ld.shared
// CHECK:       tcgen05.ld.sync.aligned.32x32b.x16.b32
// CHECK-COUNT-8: fma.rn.f32x2
// CHECK:       tcgen05.ld.sync.aligned.32x32b.x16.b32
// CHECK:       tcgen05.fence::before_thread_sync;
// CHECK-NEXT:  bar.warp.sync
// CHECK:       mbarrier.arrive.shared
// CHECK-COUNT-8: fma.rn.f32x2
// CHECK-NOT:   fma.rn.f32x2
// CHECK:       bar.warp.sync
// CHECK:       mbarrier.arrive.shared
// CHECK:       cp.async.bulk.tensor.2d.global.shared::cta

// A stage's first product overwrites; a set of sums is full with each stage.
// CHECK:       tcgen05.fence::after_thread_sync;
// CHECK:       mov.pred 	%[[OVERWRITES:p[0-9]+]], 0;
// CHECK:       tcgen05.mma.cta_group::1.kind::f8f6f4.collector::a::discard [%[[SUMS:r[0-9]+]]], %{{.*}}, %{{.*}}, %{{.*}}, %[[OVERWRITES]];
// CHECK-COUNT-3: tcgen05.mma.cta_group::1.kind::f8f6f4.collector::a::discard [%[[SUMS]]],
// CHECK-NOT:   tcgen05.mma
// CHECK-COUNT-2: tcgen05.commit

// Four of 128 rows each lane, and one of the block.
// CHECK-COUNT-5: cp.async.ca.shared.global [%{{.*}}], [%{{.*}}], 4,
// CHECK-NOT:   cp.async.ca
// CHECK:       tcgen05.dealloc
func.func @block(%a: !x, %b: !w) -> tensor<?x4096xbf16> {
  %0 = fp8.matmul %a, %b
    {fp8_gpu.config = #fp8_sm100.gemm<tile_m = 128, tile_n = 64, stages = 2, staging = 1, epilogue_warpgroups = 2>}
    : !x, !w -> tensor<?x4096xbf16>
  return %0 : tensor<?x4096xbf16>
}

// A factor for each column, four of which are loaded at once; one warpgroup has
// the registers that it needs.

// CHECK-LABEL: .visible .entry fp8_matmul_sm100a_e4m3_e4m3_bf16_1x128_1x128_promote_128x32_s2_direct_g16
// CHECK:       .reqntid 256, 1, 1
// CHECK-NOT:   setmaxnreg
// CHECK:       tcgen05.ld.sync.aligned.32x32b.x16.b32
// CHECK-COUNT-4: ld.shared.v2.b64
// CHECK-COUNT-8: mul.rn.f32x2
// CHECK:       tcgen05.ld.sync.aligned.32x32b.x16.b32
func.func @rows(%a: !x, %b: !x) -> tensor<?x?xbf16> {
  %0 = fp8.matmul %a, %b
    {fp8_gpu.config = #fp8_sm100.gemm<tile_m = 128, tile_n = 32, stages = 2, store = direct>}
    : !x, !x -> tensor<?x?xbf16>
  return %0 : tensor<?x?xbf16>
}

// The second of two blocks gives sums back in the first, and factors in itself.

!y = !fp8.scaled<4096x4096xf8E4M3FN, block = [1, 128], scale = f32>

// CHECK-LABEL: .visible .entry fp8_matmul_sm100a_e4m3_e5m2_f32_1x128_128x128_promote_256x64
// CHECK-DAG:   mapa.shared::cluster
// CHECK:       bar.warp.sync
// CHECK:       mbarrier.arrive.shared::cluster
// CHECK:       bar.warp.sync
// CHECK:       mbarrier.arrive.shared.b64
func.func @pair(%a: !y, %b: !w) -> tensor<4096x4096xf32> {
  %0 = fp8.matmul %a, %b
    {fp8_gpu.config = #fp8_sm100.gemm<tile_m = 256, tile_n = 64, stages = 2, cta_group = 2>}
    : !y, !w -> tensor<4096x4096xf32>
  return %0 : tensor<4096x4096xf32>
}
