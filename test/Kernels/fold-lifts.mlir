// RUN: fp8-opt --fp8-fold-lifts=chip=sm_90a %s 2>&1 | FileCheck %s
// RUN: fp8-opt --fp8-fold-lifts=chip=sm_100a %s 2>&1 | FileCheck %s --check-prefix=BLACKWELL
// RUN: not fp8-opt --fp8-fold-lifts=chip=sm_70 %s 2>&1 | FileCheck %s --check-prefix=CHIP

// CHIP: error: expected chip to be one of sm_90a, sm_100a, sm_89, sm_120a, sm_121a, sm_80, but got 'sm_70'
// BLACKWELL-COUNT-3: remark: weights are lifted in memory: no kernel reads them packed for each matmul of them
// BLACKWELL-NOT: folded

!x = !fp8.scaled<64x256xf8E4M3FN, block = [1, *], scale = f32>
!w = !fp8.scaled<128x256xf8E4M3FN, block = [1, *], scale = f32>

// Two products of one weight.
// CHECK-LABEL: func.func @matmuls
// CHECK: fp8.lift %{{.*}}, %{{.*}} folded : tensor<128x256xf4E2M1FN>
func.func @matmuls(%a: !x, %b: !x, %p: tensor<128x256xf4E2M1FN>, %e: tensor<2x128xi32>, %s: tensor<128x1xf32>)
    -> (tensor<64x128xbf16>, tensor<64x128xf32>) {
  %l = fp8.lift %p, %e : tensor<128x256xf4E2M1FN>, tensor<2x128xi32> -> tensor<128x256xf8E4M3FN>
  %w = fp8.assemble %l, %s : tensor<128x256xf8E4M3FN>, tensor<128x1xf32> -> !w
  %0 = fp8.matmul %a, %w : !x, !w -> tensor<64x128xbf16>
  %1 = fp8.matmul %b, %w accumulate = fast : !x, !w -> tensor<64x128xf32>
  return %0, %1 : tensor<64x128xbf16>, tensor<64x128xf32>
}

// CHECK-LABEL: func.func @groups
// CHECK: fp8.lift %{{.*}}, %{{.*}} folded : tensor<5x128x256xf4E2M1FN>
!g = !fp8.scaled<5x128x256xf8E4M3FN, block = [1, 1, *], scale = f32>
func.func @groups(%a: !x, %o: tensor<6xi32>, %p: tensor<5x128x256xf4E2M1FN>, %e: tensor<5x2x128xi32>, %s: tensor<5x128x1xf32>)
    -> tensor<64x128xbf16> {
  %l = fp8.lift %p, %e : tensor<5x128x256xf4E2M1FN>, tensor<5x2x128xi32> -> tensor<5x128x256xf8E4M3FN>
  %w = fp8.assemble %l, %s : tensor<5x128x256xf8E4M3FN>, tensor<5x128x1xf32> -> !g
  %0 = fp8.grouped_matmul %a, %w offsets(%o : tensor<6xi32>) : !x, !g -> tensor<64x128xbf16>
  return %0 : tensor<64x128xbf16>
}

// Something else reads them; they are no B; they are neither.
// CHECK-LABEL: func.func @others
// CHECK-NOT: folded
// CHECK: return
func.func @others(%a: !w, %p: tensor<128x256xf4E2M1FN>, %e: tensor<2x128xi32>, %s: tensor<128x1xf32>)
    -> (tensor<128x256xf8E4M3FN>, tensor<128x128xf32>, tensor<128x128xf32>) {
  %l = fp8.lift %p, %e : tensor<128x256xf4E2M1FN>, tensor<2x128xi32> -> tensor<128x256xf8E4M3FN>
  %w = fp8.assemble %l, %s : tensor<128x256xf8E4M3FN>, tensor<128x1xf32> -> !w
  %0 = fp8.matmul %a, %w : !w, !w -> tensor<128x128xf32>
  %m = fp8.lift %p, %e {n = 1} : tensor<128x256xf4E2M1FN>, tensor<2x128xi32> -> tensor<128x256xf8E4M3FN>
  %v = fp8.assemble %m, %s : tensor<128x256xf8E4M3FN>, tensor<128x1xf32> -> !w
  %1 = fp8.matmul %v, %v : !w, !w -> tensor<128x128xf32>
  return %l, %0, %1 : tensor<128x256xf8E4M3FN>, tensor<128x128xf32>, tensor<128x128xf32>
}

// Bulk copies of exponents want N in fours.
// CHECK-LABEL: func.func @narrow
// CHECK-NOT: folded
// CHECK: return
!n = !fp8.scaled<126x256xf8E4M3FN, block = [1, *], scale = f32>
func.func @narrow(%a: !x, %p: tensor<126x256xf4E2M1FN>, %e: tensor<2x126xi32>, %s: tensor<126x1xf32>) -> tensor<64x126xbf16> {
  %l = fp8.lift %p, %e : tensor<126x256xf4E2M1FN>, tensor<2x126xi32> -> tensor<126x256xf8E4M3FN>
  %w = fp8.assemble %l, %s : tensor<126x256xf8E4M3FN>, tensor<126x1xf32> -> !n
  %0 = fp8.matmul %a, %w : !x, !n -> tensor<64x126xbf16>
  return %0 : tensor<64x126xbf16>
}

// Factors of a byte beside codes: with few rows kernels read them, and with
// rows that nobody counted. With many a pass over memory costs less.
!m = !fp8.scaled<4096x4096xf8E4M3FN, block = [1, 32], scale = f8E8M0FNU>
// CHECK-LABEL: func.func @few_rows
// CHECK: fp8.dequantize %{{.*}} {fp8.folded}
// CHECK-LABEL: func.func @any_rows
// CHECK: fp8.dequantize %{{.*}} {fp8.folded}
// CHECK-LABEL: func.func @many_rows
// CHECK-NOT: fp8.folded
// CHECK: return
func.func @few_rows(%a: tensor<16x4096xbf16>, %w: !m) -> tensor<16x4096xbf16> {
  %b = fp8.dequantize %w : !m -> tensor<4096x4096xbf16>
  %0 = fp8.matmul %a, %b accumulate = fast : tensor<16x4096xbf16>, tensor<4096x4096xbf16> -> tensor<16x4096xbf16>
  return %0 : tensor<16x4096xbf16>
}
func.func @any_rows(%a: tensor<?x4096xbf16>, %w: !m) -> tensor<?x4096xbf16> {
  %b = fp8.dequantize %w : !m -> tensor<4096x4096xbf16>
  %0 = fp8.matmul %a, %b accumulate = fast : tensor<?x4096xbf16>, tensor<4096x4096xbf16> -> tensor<?x4096xbf16>
  return %0 : tensor<?x4096xbf16>
}
func.func @many_rows(%a: tensor<8192x4096xbf16>, %w: !m) -> tensor<8192x4096xbf16> {
  %b = fp8.dequantize %w : !m -> tensor<4096x4096xbf16>
  %0 = fp8.matmul %a, %b accumulate = fast : tensor<8192x4096xbf16>, tensor<4096x4096xbf16> -> tensor<8192x4096xbf16>
  return %0 : tensor<8192x4096xbf16>
}

// What is quantized here, what is read by something else or as A, in another
// type, or with the factor of a tensor, stays.
!n4 = !fp8.scaled<256x256xf4E2M1FN, block = [1, 16], scale = f8E4M3FN, tensor_scale = f32>
!q = !fp8.scaled<256x256xf8E4M3FN, block = [1, 32], scale = f8E8M0FNU>
// CHECK-LABEL: func.func @stay
// CHECK-NOT: fp8.folded
// CHECK: return
func.func @stay(%a: tensor<?x256xbf16>, %x: tensor<256x256xbf16>, %s: tensor<256x8xf32>, %i: tensor<256x8xf8E8M0FNU>,
                %w: !n4, %v: !q) -> (tensor<?x256xf32>, tensor<?x256xf32>, tensor<256x256xbf16>, tensor<256x256xf32>) {
  %q = fp8.quantize %x scale(%s, %i : tensor<256x8xf32>, tensor<256x8xf8E8M0FNU>) : tensor<256x256xbf16> -> !q
  %0 = fp8.dequantize %q : !q -> tensor<256x256xbf16>
  %1 = fp8.matmul %a, %0 accumulate = fast : tensor<?x256xbf16>, tensor<256x256xbf16> -> tensor<?x256xf32>
  %2 = fp8.dequantize %w : !n4 -> tensor<256x256xbf16>
  %3 = fp8.matmul %a, %2 accumulate = fast : tensor<?x256xbf16>, tensor<256x256xbf16> -> tensor<?x256xf32>
  %4 = fp8.dequantize %v : !q -> tensor<256x256xbf16>
  %5 = fp8.matmul %4, %x accumulate = fast : tensor<256x256xbf16>, tensor<256x256xbf16> -> tensor<256x256xf32>
  return %1, %3, %4, %5 : tensor<?x256xf32>, tensor<?x256xf32>, tensor<256x256xbf16>, tensor<256x256xf32>
}

// Factors of every other row begin within a word with gpt-oss's widths: kernels
// read these where rows make whole words.
!e = !fp8.scaled<32x5760x2880xf4E2M1FN, block = [1, 1, 32], scale = f8E8M0FNU>
!f = !fp8.scaled<2880x2880xf8E4M3FN, block = [1, 32], scale = f8E8M0FNU>
!o = !fp8.scaled<2881x2880xf8E4M3FN, block = [1, 32], scale = f8E8M0FNU>
// CHECK-LABEL: func.func @within_words
// CHECK: fp8.dequantize %{{.*}} {fp8.folded}
// CHECK: fp8.dequantize %{{.*}} {fp8.folded}
// CHECK-LABEL: func.func @odd_rows
// CHECK-NOT: fp8.folded
// CHECK: return
func.func @within_words(%a: tensor<?x2880xbf16>, %w: !e, %v: !f, %o: tensor<33xi32>) -> (tensor<?x5760xbf16>, tensor<?x2880xbf16>) {
  %0 = fp8.dequantize %w : !e -> tensor<32x5760x2880xbf16>
  %1 = fp8.grouped_matmul %a, %0 offsets(%o : tensor<33xi32>) accumulate = fast : tensor<?x2880xbf16>, tensor<32x5760x2880xbf16> -> tensor<?x5760xbf16>
  %2 = fp8.dequantize %v : !f -> tensor<2880x2880xbf16>
  %3 = fp8.matmul %a, %2 accumulate = fast : tensor<?x2880xbf16>, tensor<2880x2880xbf16> -> tensor<?x2880xbf16>
  return %1, %3 : tensor<?x5760xbf16>, tensor<?x2880xbf16>
}
func.func @odd_rows(%a: tensor<?x2880xbf16>, %w: !o) -> tensor<?x2881xbf16> {
  %0 = fp8.dequantize %w : !o -> tensor<2881x2880xbf16>
  %1 = fp8.matmul %a, %0 accumulate = fast : tensor<?x2880xbf16>, tensor<2881x2880xbf16> -> tensor<?x2881xbf16>
  return %1 : tensor<?x2881xbf16>
}

// E4M3 with factors of 128x128, of which K may end within one, and codes that
// become f16; K in halves of 32 has no kernel.
!block = !fp8.scaled<4096x2880xf8E4M3FN, block = [128, 128], scale = f32>
!odd_block = !fp8.scaled<4096x2848xf8E4M3FN, block = [128, 128], scale = f32>
!blocks = !fp8.scaled<8x4096x2048xf8E4M3FN, block = [1, 128, 128], scale = f32>
// CHECK-LABEL: func.func @blocks
// CHECK: fp8.dequantize %{{.*}} {fp8.folded} : <4096x2880xf8E4M3FN, block = [128, 128], scale = f32> -> tensor<4096x2880xbf16>
// CHECK-LABEL: func.func @groups_of_blocks
// CHECK: fp8.dequantize %{{.*}} {fp8.folded}
// CHECK-LABEL: func.func @half_precision
// CHECK: fp8.dequantize %{{.*}} {fp8.folded} : <4096x4096xf8E4M3FN, block = [1, 32], scale = f8E8M0FNU> -> tensor<4096x4096xf16>
// CHECK-LABEL: func.func @odd_blocks
// CHECK-NOT: fp8.folded
// CHECK: return
func.func @blocks(%a: tensor<?x2880xbf16>, %w: !block) -> tensor<?x4096xbf16> {
  %b = fp8.dequantize %w : !block -> tensor<4096x2880xbf16>
  %0 = fp8.matmul %a, %b accumulate = fast : tensor<?x2880xbf16>, tensor<4096x2880xbf16> -> tensor<?x4096xbf16>
  return %0 : tensor<?x4096xbf16>
}
func.func @groups_of_blocks(%a: tensor<64x2048xbf16>, %o: tensor<9xi32>, %w: !blocks) -> tensor<64x4096xbf16> {
  %b = fp8.dequantize %w : !blocks -> tensor<8x4096x2048xbf16>
  %0 = fp8.grouped_matmul %a, %b offsets(%o : tensor<9xi32>) accumulate = fast : tensor<64x2048xbf16>, tensor<8x4096x2048xbf16> -> tensor<64x4096xbf16>
  return %0 : tensor<64x4096xbf16>
}
func.func @half_precision(%a: tensor<?x4096xf16>, %w: !m) -> tensor<?x4096xf16> {
  %b = fp8.dequantize %w : !m -> tensor<4096x4096xf16>
  %0 = fp8.matmul %a, %b accumulate = fast : tensor<?x4096xf16>, tensor<4096x4096xf16> -> tensor<?x4096xf16>
  return %0 : tensor<?x4096xf16>
}
func.func @odd_blocks(%a: tensor<?x2848xbf16>, %w: !odd_block) -> tensor<?x4096xbf16> {
  %b = fp8.dequantize %w : !odd_block -> tensor<4096x2848xbf16>
  %0 = fp8.matmul %a, %b accumulate = fast : tensor<?x2848xbf16>, tensor<4096x2848xbf16> -> tensor<?x4096xbf16>
  return %0 : tensor<?x4096xbf16>
}

// Batches that share factors have no kernel.
!shared = !fp8.scaled<4x128x256xf8E4M3FN, block = [2, 128, 128], scale = f32>
!whole = !fp8.scaled<4x128x64xf8E4M3FN, block = [*, 1, 32], scale = f8E8M0FNU>
// CHECK-LABEL: func.func @shared_by_batches
// CHECK-NOT: fp8.folded
// CHECK: return
func.func @shared_by_batches(%a: tensor<4x8x256xbf16>, %c: tensor<4x8x64xbf16>, %w: !shared, %v: !whole) -> (tensor<4x8x128xbf16>, tensor<4x8x128xbf16>) {
  %b = fp8.dequantize %w : !shared -> tensor<4x128x256xbf16>
  %0 = fp8.matmul %a, %b accumulate = fast : tensor<4x8x256xbf16>, tensor<4x128x256xbf16> -> tensor<4x8x128xbf16>
  %d = fp8.dequantize %v : !whole -> tensor<4x128x64xbf16>
  %1 = fp8.matmul %c, %d accumulate = fast : tensor<4x8x64xbf16>, tensor<4x128x64xbf16> -> tensor<4x8x128xbf16>
  return %0, %1 : tensor<4x8x128xbf16>, tensor<4x8x128xbf16>
}
