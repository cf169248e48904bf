// RUN: fp8-opt %s --fp8-decompose-attention --split-input-file | FileCheck %s
// RUN: fp8-opt %s --fp8-decompose-attention=chip=sm_90a --split-input-file 2> %t.remarks | FileCheck %s --check-prefix=SM90
// RUN: FileCheck %s --check-prefix=REMARK < %t.remarks
// RUN: fp8-opt %s --fp8-decompose-attention=chip=sm_100a --split-input-file 2>&1 | FileCheck %s --check-prefix=OTHERS
// RUN: fp8-opt %s --fp8-decompose-attention=chip=sm_89 --split-input-file 2>&1 | FileCheck %s --check-prefix=OTHERS

// Scores of codes are multiplied by the factors of both blocks, and values are numbers before they are.

// CHECK-LABEL: @blocks
// CHECK: %[[SCORES:.*]] = fp8.matmul {{.*}} accumulate = fast : !fp8.scaled<8x256x64xf8E4M3FN, block = [*, *, *], scale = f32>
// CHECK: linalg.generic {{.*}} ins(%[[SCORES]]
// CHECK: arith.divui %{{.*}}, %c64
// CHECK: tensor.extract {{.*}} : tensor<8x4x1xf32>
// CHECK: arith.mulf
// CHECK: tensor.extract {{.*}} : tensor<8x2x1xf32>
// CHECK: arith.mulf
// CHECK: linalg.generic {{.*}} ins({{.*}} : tensor<8x256x64xf8E4M3FN>)
// CHECK: tensor.extract {{.*}} : tensor<8x4x1xf32>
// CHECK: fp8.matmul {{.*}} transpose_b accumulate = fast : tensor<8x256x256xf32>, tensor<8x256x64xf32>
// SM90-LABEL: @blocks
// SM90: fp8.attention
// OTHERS: remark: no kernel: expected factors for tensors or heads, but got factors for blocks of positions; computed as two products and a softmax
!q = !fp8.scaled<2x256x4x64xf8E4M3FN, block = [1, 64, 1, *], scale = f32>
!k = !fp8.scaled<2x256x2x64xf8E4M3FN, block = [1, 128, 1, *], scale = f32>
!v = !fp8.scaled<2x256x2x64xf8E4M3FN, block = [1, 64, 1, *], scale = f32>
func.func @blocks(%q: !q, %k: !k, %v: !v) -> tensor<2x256x4x64xbf16> {
  %0 = fp8.attention %q, %k, %v scale = 0.125 : !q, !k, !v -> tensor<2x256x4x64xbf16>
  return %0 : tensor<2x256x4x64xbf16>
}

// -----

// A tile has one factor.

// REMARK: remark: no kernel: expected factors of k for blocks of a multiple of tile_k, 32, but got blocks of 16 positions; computed as two products and a softmax
// SM90-LABEL: @small_blocks
// SM90-NOT: fp8.attention
!s = !fp8.scaled<2x4x64x64xf8E4M3FN, block = [1, 1, 16, *], scale = f32>
func.func @small_blocks(%q: !s) -> tensor<2x4x64x64xbf16> {
  %0 = fp8.attention %q, %q, %q scale = 0.125 layout = bhsd : !s, !s, !s -> tensor<2x4x64x64xbf16>
  return %0 : tensor<2x4x64x64xbf16>
}

// -----

// Tiles of invariant attention may begin in the middle of a block.

// REMARK: remark: no kernel: expected no factors for blocks of positions in invariant attention, but got some of q
!i = !fp8.scaled<2x4x192x64xf8E4M3FN, block = [1, 1, 96, *], scale = f32>
func.func @invariant(%q: !i) -> tensor<2x4x192x64xbf16> attributes {fp8.invariant} {
  %0 = fp8.attention %q, %q, %q scale = 0.125 layout = bhsd : !i, !i, !i -> tensor<2x4x192x64xbf16>
  return %0 : tensor<2x4x192x64xbf16>
}

// -----

// Kernels count positions in 32 bits.

// REMARK: remark: no kernel: expected factors of q for blocks of at most 2147483647 positions, but got 4294967296; computed as two products and a softmax
// SM90-LABEL: @large_blocks
// SM90-NOT: fp8.attention
!l = !fp8.scaled<2x4x?x64xf8E4M3FN, block = [1, 1, 4294967296, *], scale = f32>
func.func @large_blocks(%q: !l) -> tensor<2x4x?x64xbf16> {
  %0 = fp8.attention %q, %q, %q scale = 0.125 layout = bhsd : !l, !l, !l -> tensor<2x4x?x64xbf16>
  return %0 : tensor<2x4x?x64xbf16>
}
