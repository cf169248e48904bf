// RUN: fp8-opt --fp8-set-target=chip=sm_90a --fp8-select-kernels --split-input-file %s | FileCheck %s
// RUN: fp8-opt --fp8-set-target=chip=sm_90a --fp8-select-kernels --fp8-build-kernels --fp8-launch-kernels --split-input-file %s | FileCheck %s --check-prefix=LAUNCH

// Tiles follow the head dimension, the element type and how sums are promoted.

!b128 = tensor<2x?x32x128xbf16>
!k128 = tensor<2x?x8x128xbf16>
// CHECK-LABEL: @causal
// CHECK: fp8_gpu.config = #fp8_sm90.attention<tile_q = 128, tile_k = 128, stages = 2, maxima = overflow>
// LAUNCH-LABEL: @causal
// LAUNCH: fp8_gpu.launch @fp8_kernels::@fp8_attention_sm90a_bf16_d128_causal_128x128_s2_overflow
// LAUNCH: llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz.f32"
// LAUNCH: llvm.inline_asm {{.*}}wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16
func.func @causal(%q: !b128, %k: !k128, %v: !k128) -> !b128 {
  %0 = fp8.attention %q, %k, %v scale = 0.088 window = [*, 0] : !b128, !k128, !k128 -> !b128
  return %0 : !b128
}

// -----

// Few keys, a part of which is hidden, come in narrower tiles.

!b128 = tensor<2x4096x32x128xbf16>
// CHECK-LABEL: @few_keys
// CHECK: fp8_gpu.config = #fp8_sm90.attention<tile_q = 128, tile_k = 128, stages = 2, maxima = overflow>
func.func @few_keys(%q: !b128) -> !b128 {
  %0 = fp8.attention %q, %q, %q scale = 0.088 window = [*, 0] : !b128, !b128, !b128 -> !b128
  return %0 : !b128
}

// -----

!b64 = tensor<2x1024x16x64xf16>
// CHECK-LABEL: @short
// CHECK: #fp8_sm90.attention<tile_q = 192, tile_k = 128, stages = 2>
// LAUNCH-LABEL: @short
// LAUNCH: %[[LSE:.*]] = tensor.empty() : tensor<2x16x1024xf32>
// LAUNCH: fp8_gpu.launch @fp8_kernels::@fp8_attention_sm90a_f16_d64_192x128_s2
// LAUNCH-SAME: outs({{.*}}, %[[LSE]] : tensor<2x1024x16x64xbf16>, tensor<2x16x1024xf32>)
func.func @short(%q: !b64) -> (tensor<2x1024x16x64xbf16>, tensor<2x16x1024xf32>) {
  %0, %1 = fp8.attention %q, %q, %q scale = 0.125 : !b64, !b64, !b64 -> tensor<2x1024x16x64xbf16>, tensor<2x16x1024xf32>
  return %0, %1 : tensor<2x1024x16x64xbf16>, tensor<2x16x1024xf32>
}

// -----

// Codes and factors are arguments; the wide matrices of 8-bit values are transposed on their way.

!s = !fp8.scaled<1x512x4x128xf8E4M3FN, block = [1, *, 1, *], scale = f32>
// CHECK-LABEL: @codes
// CHECK: #fp8_sm90.attention<tile_q = 128, tile_k = 192, stages = 2, turn = scored>
// LAUNCH-LABEL: @codes
// LAUNCH: fp8_gpu.launch @fp8_kernels::@fp8_attention_sm90a_f8_d128_128x192_s2_scored
// LAUNCH-SAME: ins({{.*}} : tensor<1x512x4x128xf8E4M3FN>, tensor<1x512x4x128xf8E4M3FN>, tensor<1x512x4x128xf8E4M3FN>, tensor<1x1x4x1xf32>, tensor<1x1x4x1xf32>, tensor<1x1x4x1xf32>)
// LAUNCH: llvm.func @fp8_attention_sm90a_f8_d128_128x192_s2_scored
// LAUNCH: wgmma.mma_async.sync.aligned.m64n128k32.f32.e4m3.e4m3
// LAUNCH: nvvm.ldmatrix {{.*}}#nvvm.mma_layout<col>
func.func @codes(%q: !s) -> tensor<1x512x4x128xbf16> {
  %0 = fp8.attention %q, %q, %q scale = 0.088 accumulate = fast : !s, !s, !s -> tensor<1x512x4x128xbf16>
  return %0 : tensor<1x512x4x128xbf16>
}

// -----

!s = !fp8.scaled<1x512x4x128xf8E4M3FN, block = [*, *, *, *], scale = f32>
// CHECK-LABEL: @promoted
// CHECK: #fp8_sm90.attention<tile_q = 128, tile_k = 128, stages = 2, polynomials = 4>
func.func @promoted(%q: !s) -> tensor<1x512x4x128xbf16> {
  %0 = fp8.attention %q, %q, %q scale = 0.088 : !s, !s, !s -> tensor<1x512x4x128xbf16>
  return %0 : tensor<1x512x4x128xbf16>
}

// -----

// Few queries are in one tile with the heads that read the same keys, and blocks share these. The last query
// sees all of them.

!q = tensor<?x1x32x128xbf16>
!k = tensor<?x?x8x128xbf16>
// CHECK-LABEL: @decode
// CHECK: #fp8_sm90.attention<tile_q = 64, tile_k = 64, stages = 3, tile_heads = 4, split_tiles = 2, turn = none>
// LAUNCH-LABEL: @decode
// LAUNCH: fp8_gpu.launch @fp8_kernels::@fp8_attention_sm90a_bf16_d128_64x64_s3_h4_split2_none
// LAUNCH: llvm.func @fp8_attention_sm90a_bf16_d128_64x64_s3_h4_split2_none
// LAUNCH: llvm.atomicrmw uinc_wrap
func.func @decode(%q: !q, %k: !k, %v: !k) -> !q {
  %0 = fp8.attention %q, %k, %v scale = 0.088 window = [*, 0] bottom_right : !q, !k, !k -> !q
  return %0 : !q
}

// -----

// Queries of more heads than a tile has room for are in tiles of their own.

!q = tensor<1x9x14x64xbf16>
!k = tensor<1x512x2x64xbf16>
// CHECK-LABEL: @group_of_seven
// CHECK: #fp8_sm90.attention<tile_q = 64, tile_k = 128, stages = 2, turn = none>
func.func @group_of_seven(%q: !q, %k: !k, %v: !k) -> !q {
  %0 = fp8.attention %q, %k, %v scale = 0.125 : !q, !k, !k -> !q
  return %0 : !q
}

// -----

!q = tensor<1x8x14x64xbf16>
!k = tensor<1x512x2x64xbf16>
// CHECK-LABEL: @rows_of_seven
// CHECK: #fp8_sm90.attention<tile_q = 64, tile_k = 128, stages = 3, tile_heads = 8, split_tiles = 2, turn = none>
func.func @rows_of_seven(%q: !q, %k: !k, %v: !k) -> !q {
  %0 = fp8.attention %q, %k, %v scale = 0.125 : !q, !k, !k -> !q
  return %0 : !q
}

// -----

// A bulk copy brings a page, or what a tile has of one.

!q = tensor<2x1x4x64xbf16>
!k = tensor<?x16x2x64xbf16>
// CHECK-LABEL: @pages
// LAUNCH: #fp8_gpu.tensor_map<1, box = [64, 1, 16, 1], swizzle = 128, l2 = 128>
// LAUNCH-LABEL: @pages
// LAUNCH: fp8_gpu.launch {{.*}} ins({{.*}} : tensor<2x1x4x64xbf16>, tensor<?x16x2x64xbf16>, tensor<?x16x2x64xbf16>, tensor<2xi32>, tensor<2x?xi32>)
func.func @pages(%q: !q, %k: !k, %lengths: tensor<2xi32>, %table: tensor<2x?xi32>) -> !q {
  %0 = fp8.attention %q, %k, %k key_lengths(%lengths : tensor<2xi32>) page_table(%table : tensor<2x?xi32>) scale = 0.125 : !q, !k, !k -> !q
  return %0 : !q
}

// -----

// Numbers of keys of each batch are an argument.

!q = tensor<2x300x4x64xbf16>
// CHECK-LABEL: @lengths
// CHECK: fp8.attention {{.*}} key_lengths(
// LAUNCH-LABEL: @lengths
// LAUNCH: fp8_gpu.launch {{.*}} ins({{.*}} : tensor<2x300x4x64xbf16>, tensor<2x300x4x64xbf16>, tensor<2x300x4x64xbf16>, tensor<2xi32>)
func.func @lengths(%q: !q, %lengths: tensor<2xi32>) -> !q {
  %0 = fp8.attention %q, %q, %q key_lengths(%lengths : tensor<2xi32>) scale = 0.125 : !q, !q, !q -> !q
  return %0 : !q
}

// -----

// So are their first keys, ranges of queries' keys, and scores of heads.

!q = tensor<2x300x4x64xbf16>
// CHECK-LABEL: @starts
// CHECK: fp8.attention {{.*}} key_starts({{.*}} key_ranges({{.*}} sinks(
// LAUNCH-LABEL: @starts
// LAUNCH: fp8_gpu.launch {{.*}} ins({{.*}} : tensor<2x300x4x64xbf16>, tensor<2x300x4x64xbf16>, tensor<2x300x4x64xbf16>, tensor<2xi32>, tensor<2xi32>, tensor<2x300x2xi32>, tensor<4xf32>)
func.func @starts(%q: !q, %numbers: tensor<2xi32>, %ranges: tensor<2x300x2xi32>, %sinks: tensor<4xf32>) -> !q {
  %0 = fp8.attention %q, %q, %q key_lengths(%numbers : tensor<2xi32>) key_starts(%numbers : tensor<2xi32>)
      key_ranges(%ranges : tensor<2x300x2xi32>) sinks(%sinks : tensor<4xf32>) scale = 0.125 : !q, !q, !q -> !q
  return %0 : !q
}

// -----

// So is a mask of few queries, of which each key's byte is read.

!q = tensor<2x1x4x64xbf16>
!k = tensor<2x?x2x64xbf16>
// CHECK-LABEL: @mask
// CHECK: #fp8_sm90.attention<tile_q = 64, tile_k = 128, stages = 3, tile_heads = 2, split_tiles = 2, turn = none>
// LAUNCH: #fp8_gpu.argument<name = "mask", element = i1, rank = 4, access = read, alignment = 1>
// LAUNCH-LABEL: @mask
// LAUNCH: fp8_gpu.launch {{.*}} ins({{.*}} : tensor<2x1x4x64xbf16>, tensor<2x?x2x64xbf16>, tensor<2x?x2x64xbf16>, tensor<2xi32>, tensor<2x1x1x?xi1>)
// LAUNCH: %[[BYTE:.*]] = llvm.load %{{.*}} invariant : !llvm.ptr<1> -> i8
// LAUNCH: %[[SEEN:.*]] = arith.cmpi ne, %[[BYTE]]
// LAUNCH: arith.select %[[SEEN]]
func.func @mask(%q: !q, %k: !k, %lengths: tensor<2xi32>, %mask: tensor<2x1x1x?xi1>) -> !q {
  %0 = fp8.attention %q, %k, %k mask(%mask : tensor<2x1x1x?xi1>) key_lengths(%lengths : tensor<2xi32>) scale = 0.125 : !q, !k, !k -> !q
  return %0 : !q
}

// -----

!b = tensor<1x32x4x64xbf16>
// CHECK-LABEL: @few_queries
// CHECK: #fp8_sm90.attention<tile_q = 64,
func.func @few_queries(%q: !b) -> !b {
  %0 = fp8.attention %q, %q, %q scale = 0.125 : !b, !b, !b -> !b
  return %0 : !b
}

// -----

// Short rows that see all keys take longer steps, by turns.

!s = !fp8.scaled<1x512x4x64xf8E4M3FN, block = [*, *, *, *], scale = f32>
// CHECK-LABEL: @promoted_narrow
// CHECK: #fp8_sm90.attention<tile_q = 128, tile_k = 160, stages = 2, turn = scored>
// CHECK: #fp8_sm90.attention<tile_q = 128, tile_k = 128, stages = 2, polynomials = 4>
func.func @promoted_narrow(%q: !s) -> (tensor<1x512x4x64xbf16>, tensor<1x512x4x64xbf16>) {
  %0 = fp8.attention %q, %q, %q scale = 0.125 : !s, !s, !s -> tensor<1x512x4x64xbf16>
  %1 = fp8.attention %q, %q, %q scale = 0.125 window = [*, 0] : !s, !s, !s -> tensor<1x512x4x64xbf16>
  return %0, %1 : tensor<1x512x4x64xbf16>, tensor<1x512x4x64xbf16>
}

// -----

// A mask comes last, with four dimensions.

!q = tensor<2x300x4x64xbf16>
// CHECK-LABEL: @masked
// CHECK: fp8.attention {{.*}} mask({{.*}} cap = 3.000000e+01 {{.*}}#fp8_sm90.attention<tile_q = 192,
// LAUNCH-LABEL: @masked
// LAUNCH: %[[MASK:.*]] = tensor.expand_shape {{.*}} : tensor<4x1x300xi1> into tensor<1x4x1x300xi1>
// LAUNCH: fp8_gpu.launch {{.*}} ins({{.*}} %[[MASK]] : tensor<2x300x4x64xbf16>, tensor<2x300x4x64xbf16>, tensor<2x300x4x64xbf16>, tensor<4xf32>, tensor<1x4x1x300xi1>)
func.func @masked(%q: !q, %sinks: tensor<4xf32>, %mask: tensor<4x1x300xi1>) -> !q {
  %0 = fp8.attention %q, %q, %q mask(%mask : tensor<4x1x300xi1>) sinks(%sinks : tensor<4xf32>) scale = 0.125 cap = 30.0 : !q, !q, !q -> !q
  return %0 : !q
}

// -----

// A turn is given with the maxima where that is faster: a zero, which is loaded behind it, is added to what powers are computed
// with. Work with scores that was not timed, and 8 bits of wide rows, keep the turn that they had.

!b = tensor<1x4096x4x256xf16>
!h = tensor<1x4096x4x64xbf16>
!s = !fp8.scaled<1x4096x4x64xf8E4M3FN, block = [*, *, *, *], scale = f32>
!w = !fp8.scaled<1x4096x4x256xf8E4M3FN, block = [*, *, *, *], scale = f32>
// CHECK-LABEL: @raised
// CHECK: #fp8_sm90.attention<tile_q = 128, tile_k = 80, stages = 2, turn = raised>
// CHECK: #fp8_sm90.attention<tile_q = 192, tile_k = 160, stages = 2, turn = raised>
// CHECK: #fp8_sm90.attention<tile_q = 192, tile_k = 128, stages = 2>
// CHECK: #fp8_sm90.attention<{{.*}}turn = scored>
// LAUNCH: llvm.func @fp8_attention_sm90a_f16_d256_causal_128x80_s2_raised
// LAUNCH: llvm.store %{{.*}} : i32, !llvm.ptr<3>
// LAUNCH: nvvm.barrier{{$}}
// LAUNCH: wgmma.wait_group.sync.aligned 1
// LAUNCH-COUNT-4: nvvm.shfl.sync
// LAUNCH: nvvm.barrier.arrive
// LAUNCH-NEXT: arith.constant
// LAUNCH-NEXT: llvm.getelementptr
// LAUNCH-NEXT: %[[ZERO:.*]] = llvm.load volatile
// LAUNCH: arith.addi %{{.*}}, %[[ZERO]]
// LAUNCH: arith.addi %{{.*}}, %[[ZERO]]
// LAUNCH: llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz.f32"
func.func @raised(%b: !b, %s: !s, %h: !h, %w: !w) -> (!b, !h, !h, !b) {
  %0 = fp8.attention %b, %b, %b scale = 0.0625 window = [*, 0] : !b, !b, !b -> !b
  %1 = fp8.attention %s, %s, %s scale = 0.125 accumulate = fast : !s, !s, !s -> !h
  %2 = fp8.attention %h, %h, %h scale = 0.125 cap = 30.0 : !h, !h, !h -> !h
  %3 = fp8.attention %w, %w, %w scale = 0.0625 accumulate = fast : !w, !w, !w -> !b
  return %0, %1, %2, %3 : !b, !h, !h, !b
}

// -----

// Rows of bf16 raise maxima only where powers outgrow their type, but for the widest ones that see all keys. Other work with
// scores, which was not timed, and values with more columns than keys do not.

!n = tensor<1x4096x4x96xbf16>
!m = tensor<1x4096x4x192xbf16>
!v = tensor<1x4096x4x128xbf16>
!b = tensor<1x4096x4x256xbf16>
!h = tensor<1x4096x4x64xbf16>
// CHECK-LABEL: @kept
// CHECK: #fp8_sm90.attention<tile_q = 128, tile_k = 144, stages = 2, maxima = overflow>
// CHECK: #fp8_sm90.attention<tile_q = 128, tile_k = 112, stages = 2, maxima = overflow>
// CHECK: #fp8_sm90.attention<tile_q = 128, tile_k = 64, stages = 2, maxima = overflow>
// CHECK: #fp8_sm90.attention<tile_q = 192, tile_k = 96, stages = 2, maxima = overflow>
// CHECK-NOT: overflow
func.func @kept(%n: !n, %m: !m, %v: !v, %b: !b, %h: !h) -> (!n, !v, !b, !h, !h, !b, !v) {
  %0 = fp8.attention %n, %n, %n scale = 0.1 : !n, !n, !n -> !n
  %1 = fp8.attention %m, %m, %v scale = 0.07 window = [*, 0] : !m, !m, !v -> !v
  %2 = fp8.attention %b, %b, %b scale = 0.0625 window = [*, 0] : !b, !b, !b -> !b
  %3 = fp8.attention %h, %h, %h scale = 0.125 : !h, !h, !h -> !h
  %4 = fp8.attention %h, %h, %h scale = 0.125 cap = 30.0 : !h, !h, !h -> !h
  %5 = fp8.attention %b, %b, %b scale = 0.0625 : !b, !b, !b -> !b
  %6 = fp8.attention %h, %h, %v scale = 0.125 : !h, !h, !v -> !v
  return %0, %1, %2, %3, %4, %5, %6 : !n, !v, !b, !h, !h, !b, !v
}
