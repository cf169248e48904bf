// RUN: fp8-opt --fp8-set-target=chip=sm_100a --fp8-build-kernels %s | fp8-translate --kernels-to-ptx | FileCheck %s

!x = !fp8.scaled<?x4096xf8E4M3FN, block = [*, *], scale = f32>
!w = !fp8.scaled<4096x4096xf8E5M2, block = [*, *], scale = f32>

// Two stages of 16384 + 4096 bytes, two buffers of 16384, then barriers: those
// of stages at 73728, full ones first, those of sums at 73760, and at 73792 the
// address in tensor memory.

// CHECK-LABEL: .visible .entry fp8_matmul_sm100a_e4m3_e5m2_bf16_tensor_tensor_fast_128x32_s2_g16
// CHECK-SAME: (
// CHECK:       .reqntid 256, 1, 1

// A stage has one arrival either way: the loader's, and a commit. Sums have a
// commit, and one of each warp that takes them.
// CHECK:       elect.sync
// CHECK:       mov.b32 	%[[ONE:r[0-9]+]], 1;
// CHECK-NEXT:  mbarrier.init.shared.b64 	[fp8_shared+73728], %[[ONE]];
// CHECK-NEXT:  mbarrier.init.shared.b64 	[fp8_shared+73744], %[[ONE]];
// CHECK:       mbarrier.init.shared.b64 	[fp8_shared+73760], %[[ONE]];
// CHECK:       mov.b32 	%[[WARPS:r[0-9]+]], 4;
// CHECK-NEXT:  mbarrier.init.shared.b64 	[fp8_shared+73776], %[[WARPS]];
// CHECK:       fence.mbarrier_init

// Two sets of 32 columns.
// CHECK:       mov.b32 	%[[COLUMNS:r[0-9]+]], 64;
// CHECK-NEXT:  tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 	[fp8_shared+73792], %[[COLUMNS]];
// CHECK-NEXT:  tcgen05.relinquish_alloc_permit
// CHECK:       tcgen05.fence::before_thread_sync;
// CHECK-NEXT:  bar.sync 	0;
// CHECK-NEXT:  tcgen05.fence::after_thread_sync;
// CHECK-NEXT:  ld.shared.b32 	%{{.*}}, [fp8_shared+73792];
// CHECK:       griddepcontrol.wait;

// CHECK:       mov.b32 	%[[BYTES:r[0-9]+]], 20480;
// CHECK-NEXT:  mbarrier.arrive.expect_tx.shared.b64 {{.*}}, %[[BYTES]];
// CHECK-COUNT-2: cp.async.bulk.tensor.2d.shared::cta

// Sums are given back as soon as they are in registers; a thread has a row.
// CHECK:       mbarrier.try_wait
// CHECK:       tcgen05.fence::after_thread_sync;
// CHECK:       tcgen05.ld.sync.aligned.32x32b.x32.b32
// CHECK-SAME:  tcgen05.wait::ld.sync.aligned;
// CHECK:       tcgen05.fence::before_thread_sync;
// CHECK:       bar.warp.sync
// CHECK:       mbarrier.arrive.shared
// CHECK:       bar.sync 	1, 128;
// CHECK-COUNT-4: st.shared.v4.b32
// CHECK:       fence.proxy.async.shared::cta;
// CHECK-NEXT:  bar.sync 	1, 128;
// CHECK:       cp.async.bulk.tensor.2d.global.shared::cta

// Rows of 128 bytes of K, in groups of 8: 128-byte swizzle (2 << 61), version 1
// (1 << 46), stride 1024 >> 4. Types of A and B, N >> 3, M >> 4.
// CHECK:       or.b64 {{.*}}, 4611756662049538048;
// CHECK:       or.b64 {{.*}}, 4611756662049538048;
// CHECK:       tcgen05.fence::after_thread_sync;
// CHECK:       mov.b32 	%[[INSTRUCTION:r[0-9]+]], 134743056;
// CHECK-NEXT:  tcgen05.mma.cta_group::1.kind::f8f6f4.collector::a::discard [%[[SUMS:r[0-9]+]]], %{{.*}}, %{{.*}}, %[[INSTRUCTION]], %p{{.*}};
// CHECK-COUNT-3: tcgen05.mma.cta_group::1.kind::f8f6f4.collector::a::discard [%[[SUMS]]], %{{.*}}, %{{.*}}, %[[INSTRUCTION]],
// CHECK-NOT:   tcgen05.mma
// CHECK:       tcgen05.commit

// CHECK:       tcgen05.fence::before_thread_sync;
// CHECK-NEXT:  bar.sync 	0;
// CHECK:       tcgen05.fence::after_thread_sync;
// CHECK:       tcgen05.dealloc
// CHECK:       ret;
func.func @matmul(%a: !x, %b: !w) -> tensor<?x4096xbf16> {
  %0 = fp8.matmul %a, %b accumulate = fast
    {fp8_gpu.config = #fp8_sm100.gemm<tile_m = 128, tile_n = 32, stages = 2>}
    : !x, !w -> tensor<?x4096xbf16>
  return %0 : tensor<?x4096xbf16>
}

// Rows innermost: boxes of 128 rows of A and of 32 of B, one after the other,
// groups of 8 lines of K; bits 15 and 16 of the instruction. An instruction's K
// is 32 lines.

!xt = !fp8.scaled<4096x4096xf8E4M3FN, block = [*, 1], scale = f32>
!wt = !fp8.scaled<4096x4096xf8E5M2, block = [*, 1], scale = f32>

// CHECK-LABEL: .visible .entry fp8_matmul_sm100a_e4m3_e5m2_f32_row_row_promote_tn_128x32_s2_g16
// CHECK:       or.b64 {{.*}}, 4611756662116581376;
// CHECK:       or.b64 {{.*}}, -4611615580946956288;
// CHECK:       mov.b32 	%{{.*}}, 134841360;
// CHECK-NEXT:  tcgen05.mma
// CHECK:       mov.b64 	%{{.*}}, 256;
// CHECK:       mov.b64 	%{{.*}}, 64;
// CHECK:       tcgen05.mma
func.func @transposed(%a: !xt, %b: !wt) -> tensor<4096x4096xf32> {
  %0 = fp8.matmul %a, %b transpose_a transpose_b
    {fp8_gpu.config = #fp8_sm100.gemm<tile_m = 128, tile_n = 32, stages = 2>}
    : !xt, !wt -> tensor<4096x4096xf32>
  return %0 : tensor<4096x4096xf32>
}

// Swapped operands, parts of K, 16 bits: bf16 is type 1.

// CHECK-LABEL: .visible .entry fp8_matmul_sm100a_bf16_bf16_bf16_nt_16x128_s2_swap_k4_g1
// CHECK:       tcgen05.ld.sync.aligned.32x32b.x16.b32
// CHECK:       atom.{{.*}}global.inc
// CHECK-COUNT-16: st.global.b16
// CHECK:       mov.b32 	%{{.*}}, 134481040;
// CHECK-NEXT:  tcgen05.mma.cta_group::1.kind::f16
func.func @swapped(%a: tensor<16x4096xbf16>, %b: tensor<4096x4096xbf16>) -> tensor<16x4096xbf16> {
  %0 = fp8.matmul %a, %b accumulate = fast
    {fp8_gpu.config = #fp8_sm100.gemm<tile_m = 16, tile_n = 128, stages = 2, group = 1, split_k = 4, swap_ab = true, store = direct>}
    : tensor<16x4096xbf16>, tensor<4096x4096xbf16> -> tensor<16x4096xbf16>
  return %0 : tensor<16x4096xbf16>
}

// Factors of 32: four bytes of four rows are a row of an atom, which goes to
// four columns of tensor memory behind the sums; part i of K takes byte i of
// both (bits 4 and 29), E8M0 (bit 23).

// CHECK-LABEL: .visible .entry fp8_matmul_sm100a_e4m3_e5m2_bf16_1x32_1x32_promote_128x32_s2_g16
// CHECK:       mov.b32 	%[[COLUMNS:r[0-9]+]], 128;
// CHECK-NEXT:  tcgen05.alloc
// CHECK:       or.b64 {{.*}}, 70403103916032;
// CHECK:       mbarrier.try_wait
// CHECK:       mbarrier.try_wait
// CHECK:       fence.proxy.async.shared::cta;
// CHECK-COUNT-2: tcgen05.cp.cta_group::1.32x128b.warpx4
// CHECK:       mov.b32 	%{{.*}}, 143131648;
// CHECK-NEXT:  tcgen05.mma.cta_group::1.kind::mxf8f6f4.block_scale.collector::a::discard [%{{.*}}], %{{.*}}, %{{.*}}, %{{.*}}, [%[[A:r[0-9]+]]], [%[[B:r[0-9]+]]], %p
// CHECK:       mov.b32 	%{{.*}}, 680002576;
// CHECK-NEXT:  tcgen05.mma.{{.*}}, [%[[A]]], [%[[B]]], %p
// CHECK:       mov.b32 	%{{.*}}, 1216873504;
// CHECK-NEXT:  tcgen05.mma
// CHECK:       mov.b32 	%{{.*}}, 1753744432;
// CHECK-NEXT:  tcgen05.mma
// CHECK-COUNT-8: cp.async.ca.shared.global
// CHECK-NOT:   cp.async.ca
// CHECK:       cp.async.mbarrier.arrive.noinc
!mx = !fp8.scaled<512x4096xf8E4M3FN, block = [1, 32], scale = f8E8M0FNU>
!mw = !fp8.scaled<4096x4096xf8E5M2, block = [1, 32], scale = f8E8M0FNU>
func.func @micro(%a: !mx, %b: !mw) -> tensor<512x4096xbf16> {
  %0 = fp8.matmul %a, %b
    {fp8_gpu.config = #fp8_sm100.gemm<tile_m = 128, tile_n = 32, stages = 2>}
    : !mx, !mw -> tensor<512x4096xbf16>
  return %0 : tensor<512x4096xbf16>
}

// Two codes a byte: a stage has 256 of K, whose factors of 16 are four atoms
// along K of A and of B, and an instruction takes 64 of K with an atom of each.
// Boxes are of bytes. Factors are E4M3 (bit 23 is 0), codes type 1 (bits 7
// and 10). One more factor for the tensor multiplies sums.

// CHECK-LABEL: .visible .entry fp8_matmul_sm100a_e2m1_e2m1_bf16_1x16_1x16_promote_128x32_s2_g16
// CHECK:       mov.b32 	%{{.*}}, 128;
// CHECK-NEXT:  tcgen05.alloc
// CHECK:       mov.b32 	%{{.*}}, 20480;
// CHECK-NEXT:  mbarrier.arrive.expect_tx
// CHECK:       tcgen05.ld
// CHECK:       fence.proxy.async.shared::cta;
// CHECK-COUNT-8: tcgen05.cp.cta_group::1.32x128b.warpx4
// CHECK-NOT:   tcgen05.cp
// CHECK:       mov.b32 	%[[INSTRUCTION:r[0-9]+]], 134743168;
// CHECK-NEXT:  tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale.block16.collector::a::discard [%{{.*}}], %{{.*}}, %{{.*}}, %[[INSTRUCTION]], [%[[A0:r[0-9]+]]], [%[[B0:r[0-9]+]]], %p
// CHECK-COUNT-3: tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale.block16.collector::a::discard [%{{.*}}], %{{.*}}, %{{.*}}, %[[INSTRUCTION]], [
// CHECK-NOT:   tcgen05.mma
// CHECK-COUNT-32: cp.async.ca.shared.global
// CHECK-NOT:   cp.async.ca
// CHECK:       cp.async.mbarrier.arrive.noinc
!nv = !fp8.scaled<512x4096xf4E2M1FN, block = [1, 16], scale = f8E4M3FN, tensor_scale = f32>
func.func @nvfp4(%a: !nv, %b: !nv) -> tensor<512x512xbf16> {
  %0 = fp8.matmul %a, %b
    {fp8_gpu.config = #fp8_sm100.gemm<tile_m = 128, tile_n = 32, stages = 2>}
    : !nv, !nv -> tensor<512x512xbf16>
  return %0 : tensor<512x512xbf16>
}

// Factors of 32: two atoms along K, of which an instruction takes the first or
// the second half (bits 4 and 29), and E8M0.

// CHECK-LABEL: .visible .entry fp8_matmul_sm100a_e2m1_e2m1_f32_1x32_1x32_promote_128x160_s2_g16
// CHECK-COUNT-6: tcgen05.cp.cta_group::1.32x128b.warpx4
// CHECK-NOT:   tcgen05.cp
// CHECK:       mov.b32 	%[[FIRST:r[0-9]+]], 145228928;
// CHECK-NEXT:  tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale.block32.collector::a::discard [%{{.*}}], %{{.*}}, %{{.*}}, %[[FIRST]], [%[[A:r[0-9]+]]], [%[[B:r[0-9]+]]], %p
// CHECK:       mov.b32 	%[[SECOND:r[0-9]+]], 1218970784;
// CHECK-NEXT:  tcgen05.mma.{{.*}}, %[[SECOND]], [%[[A]]], [%[[B]]], %p
// CHECK:       tcgen05.mma.{{.*}}, %[[FIRST]], [%[[A1:r[0-9]+]]], [%[[B1:r[0-9]+]]], %p
// CHECK:       tcgen05.mma.{{.*}}, %[[SECOND]], [%[[A1]]], [%[[B1]]], %p
// CHECK-NOT:   tcgen05.mma
!mf = !fp8.scaled<512x4096xf4E2M1FN, block = [1, 32], scale = f8E8M0FNU>
func.func @mxfp4(%a: !mf, %b: !mf) -> tensor<512x512xf32> {
  %0 = fp8.matmul %a, %b
    {fp8_gpu.config = #fp8_sm100.gemm<tile_m = 128, tile_n = 160, stages = 2>}
    : !mf, !mf -> tensor<512x512xf32>
  return %0 : tensor<512x512xf32>
}

// Two sets of 256 columns and 48 of factors share 64: the second set begins
// after 192, factors after 448. There is one pair of barriers for both. Of the
// first set the last columns are taken first, and two parts of 32 are given
// back together.

// CHECK-LABEL: .visible .entry fp8_matmul_sm100a_e2m1_e2m1_f32_1x16_1x16_promote_128x256_s2_g16
// CHECK:       mov.b32 	%{{.*}}, 512;
// CHECK-NEXT:  tcgen05.alloc
// CHECK:       mbarrier.try_wait.parity.shared.b64 %{{p[0-9]+}}, [[FULL:\[fp8_shared\+[0-9]+\]]], %[[PHASE:r[0-9]+]];
// CHECK:       mad.lo.s32 	%[[SET:r[0-9]+]], %[[PHASE]], 192, %
// CHECK:       setp.eq.b32 	%[[FIRST:p[0-9]+]], %[[PHASE]], 0;
// CHECK:       selp.b32 	%[[PART:r[0-9]+]], %{{r[0-9]+}}, %[[NUMBER:r[0-9]+]], %[[FIRST]];
// CHECK-NEXT:  shl.b32 	%[[COLUMN:r[0-9]+]], %[[PART]], 5;
// CHECK-NEXT:  add.s32 	%[[ADDRESS:r[0-9]+]], %[[SET]], %[[COLUMN]];
// CHECK:       tcgen05.ld.sync.aligned.32x32b.x32.b32 {{.*}}, [%[[ADDRESS]]]
// CHECK:       setp.ne.b32 	%{{p[0-9]+}}, %[[NUMBER]], 1;
// CHECK:       mbarrier.arrive.shared.b64 	%{{rd[0-9]+}}, [[EMPTY:\[fp8_shared\+[0-9]+\]]];
// CHECK:       add.s32 	%{{r[0-9]+}}, %{{r[0-9]+}}, 448;
// CHECK:       tcgen05.commit{{.*}} [[FULL]];
// CHECK:       mbarrier.try_wait.parity.shared.b64 %{{p[0-9]+}}, [[EMPTY]], %[[PHASE:r[0-9]+]];
// CHECK:       xor.b32 	%[[OTHER:r[0-9]+]], %[[PHASE]], 1;
// CHECK:       mad.lo.s32 	%{{r[0-9]+}}, %[[OTHER]], 192, %
func.func @shared_sums(%a: !nv, %b: !nv) -> tensor<512x512xf32> {
  %0 = fp8.matmul %a, %b
    {fp8_gpu.config = #fp8_sm100.gemm<tile_m = 128, tile_n = 256, stages = 2>}
    : !nv, !nv -> tensor<512x512xf32>
  return %0 : tensor<512x512xf32>
}

// A K that is not known may be zero: there is a block of zeros then.

!unknown = !fp8.scaled<?x?xf8E4M3FN, block = [*, *], scale = f32>

// CHECK-LABEL: .visible .entry fp8_matmul_sm100a_e4m3_e4m3_bf16_tensor_tensor_fast_128x32_s2_g16
// CHECK:       max.u32 	%{{r[0-9]+}}, %{{r[0-9]+}}, 1;
func.func @unknown_k(%a: !unknown, %b: !unknown) -> tensor<?x?xbf16> {
  %0 = fp8.matmul %a, %b accumulate = fast
    {fp8_gpu.config = #fp8_sm100.gemm<tile_m = 128, tile_n = 32, stages = 2>} : !unknown, !unknown -> tensor<?x?xbf16>
  return %0 : tensor<?x?xbf16>
}
