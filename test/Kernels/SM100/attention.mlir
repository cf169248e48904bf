// RUN: fp8-opt --fp8-set-target=chip=sm_100a --fp8-select-kernels --split-input-file %s | FileCheck %s
// RUN: fp8-opt --fp8-set-target=chip=sm_100a --fp8-select-kernels --fp8-build-kernels --fp8-launch-kernels --split-input-file %s | FileCheck %s --check-prefix=LAUNCH

// Twice 128 queries, and as many keys and stages as there is room for. P is the first operand of a product, from tensor memory.

!b128 = tensor<2x?x32x128xbf16>
!k128 = tensor<2x?x8x128xbf16>
// CHECK-LABEL: @causal
// CHECK: fp8_gpu.config = #fp8_sm100.attention<tile_q = 256, tile_k = 128, stages = 2>
// LAUNCH-LABEL: @causal
// LAUNCH: fp8_gpu.launch @fp8_kernels::@fp8_attention_sm100a_bf16_d128_causal_256x128_s2
// LAUNCH: nvvm.tcgen05.alloc
// LAUNCH: tcgen05.ld.sync.aligned.32x32b.x128.b32
// LAUNCH: llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz.f32"
// LAUNCH: tcgen05.st.sync.aligned.32x32b.x64.b32
// LAUNCH: nvvm.vote.sync any
// LAUNCH: nvvm.tcgen05.mma {{.*}}kind = #nvvm.tcgen05_mma_kind<f16>} : (!llvm.ptr<6>, i64, i64, i32, i1)
// LAUNCH: nvvm.tcgen05.mma {{.*}}kind = #nvvm.tcgen05_mma_kind<f16>} : (!llvm.ptr<6>, !llvm.ptr<6>, i64, i32, i1)
// LAUNCH: nvvm.tcgen05.dealloc
func.func @causal(%q: !b128, %k: !k128, %v: !k128) -> !b128 {
  %0 = fp8.attention %q, %k, %v scale = 0.088 window = [*, 0] : !b128, !k128, !k128 -> !b128
  return %0 : !b128
}

// -----

// Few queries have no other half.

!q = tensor<2x100x16x64xf16>
!k = tensor<2x1024x16x64xf16>
// CHECK-LABEL: @short
// CHECK: #fp8_sm100.attention<tile_q = 128, tile_k = 128, stages = 4>
// LAUNCH-LABEL: @short
// LAUNCH: %[[LSE:.*]] = tensor.empty() : tensor<2x16x100xf32>
// LAUNCH: fp8_gpu.launch @fp8_kernels::@fp8_attention_sm100a_f16_d64_128x128_s4
// LAUNCH-SAME: outs({{.*}}, %[[LSE]] : tensor<2x100x16x64xbf16>, tensor<2x16x100xf32>)
func.func @short(%q: !q, %k: !k) -> (tensor<2x100x16x64xbf16>, tensor<2x16x100xf32>) {
  %0, %1 = fp8.attention %q, %k, %k scale = 0.125 : !q, !k, !k -> tensor<2x100x16x64xbf16>, tensor<2x16x100xf32>
  return %0, %1 : tensor<2x100x16x64xbf16>, tensor<2x16x100xf32>
}

// -----

// Values of 8 bits are multiplied as they lie; sums need no promotion.

!s = !fp8.scaled<1x512x4x128xf8E4M3FN, block = [1, *, 1, *], scale = f32>
// CHECK-LABEL: @codes
// CHECK: #fp8_sm100.attention<tile_q = 256, tile_k = 128, stages = 4, polynomials = 4>
// LAUNCH-LABEL: @codes
// LAUNCH: tcgen05.st.sync.aligned.32x32b.x32.b32
// LAUNCH: nvvm.tcgen05.mma {{.*}}kind = #nvvm.tcgen05_mma_kind<f8f6f4>} : (!llvm.ptr<6>, !llvm.ptr<6>, i64, i32, i1)
func.func @codes(%q: !s) -> tensor<1x512x4x128xbf16> {
  %0 = fp8.attention %q, %q, %q scale = 0.088 : !s, !s, !s -> tensor<1x512x4x128xbf16>
  return %0 : tensor<1x512x4x128xbf16>
}

// -----

// Sums of 256 columns leave room for one half.

!b256 = tensor<2x4096x16x256xbf16>
// CHECK-LABEL: @wide
// CHECK: #fp8_sm100.attention<tile_q = 128, tile_k = 64, stages = 2>
func.func @wide(%q: !b256) -> !b256 {
  %0 = fp8.attention %q, %q, %q scale = 0.0625 : !b256, !b256, !b256 -> !b256
  return %0 : !b256
}

// -----

// Few queries: heads that share keys share a tile, whose rows are four times in Q, and blocks share the keys. Two of these run on a
// multiprocessor. Each warp writes P of its quarter of the keys and zeros over that of the others'.

!one = tensor<4x1x32x128xbf16>
!cache = tensor<4x?x8x128xbf16>
// CHECK-LABEL: @decode
// CHECK: fp8_gpu.config = #fp8_sm100.attention<tile_q = 128, tile_k = 64, stages = 2, tile_heads = 4, split_tiles = 2>
// LAUNCH: resident = 2
// LAUNCH-LABEL: @decode
// LAUNCH: fp8_gpu.launch @fp8_kernels::@fp8_attention_sm100a_bf16_d128_128x64_s2_h4_split2
// LAUNCH: tcgen05.ld.sync.aligned.32x32b.x16.b32
// LAUNCH-COUNT-3: tcgen05.st.sync.aligned.32x32b.x8.b32
// LAUNCH: tcgen05.st.sync.aligned.32x32b.x8.b32 {{.*}}tcgen05.wait::st
func.func @decode(%q: !one, %k: !cache, %v: !cache) -> !one {
  %0 = fp8.attention %q, %k, %v scale = 0.088 : !one, !cache, !cache -> !one
  return %0 : !one
}

// -----

// 32 rows are for 16 queries of two heads.

!sixteen = tensor<1x16x8x64xf16>
!two = tensor<1x1000x2x64xf16>
// CHECK-LABEL: @queries
// CHECK: #fp8_sm100.attention<tile_q = 128, tile_k = 128, stages = 2, tile_heads = 2, split_tiles = 2>
func.func @queries(%q: !sixteen, %k: !two) -> !sixteen {
  %0 = fp8.attention %q, %k, %k scale = 0.125 window = [*, 0] bottom_right : !sixteen, !two, !two -> !sixteen
  return %0 : !sixteen
}

// -----

// With dropout, and where bits depend on no other keys, blocks have whole tiles.

!drop = tensor<1x1x8x64xbf16>
!keys = tensor<1x1000x2x64xbf16>
// CHECK-LABEL: @dropped
// CHECK: #fp8_sm100.attention<tile_q = 128, tile_k = 64, stages = 4>
func.func @dropped(%q: !drop, %k: !keys, %state: tensor<2xi64>) -> !drop {
  %0 = fp8.attention %q, %k, %k dropout(%state : tensor<2xi64>) rate = 0.1 scale = 0.125 : !drop, !keys, !keys -> !drop
  return %0 : !drop
}

// CHECK-LABEL: @invariant
// CHECK: #fp8_sm100.attention<tile_q = 128, tile_k = 64, stages = 4>
func.func @invariant(%q: !drop, %k: !keys) -> !drop attributes {fp8.invariant} {
  %0 = fp8.attention %q, %k, %k scale = 0.125 : !drop, !keys, !keys -> !drop
  return %0 : !drop
}
