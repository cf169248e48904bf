// RUN: fp8-opt --fp8-set-target=chip=sm_90a --fp8-build-kernels --canonicalize --split-input-file %s | FileCheck %s

// Factors of 1x128 that lie with their rows side by side come with A and B, by a
// bulk copy of a K block's; a warp copies B's.

!a = !fp8.scaled<256x1024xf8E4M3FN, block = [1, 128], scale = f32>
!b = !fp8.scaled<512x1024xf8E4M3FN, block = [128, 128], scale = f32>
func.func @in_bulk(%codes: tensor<256x1024xf8E4M3FN>, %stored: tensor<8x256xf32>, %b: !b) -> tensor<256x512xbf16> {
  %empty = tensor.empty() : tensor<256x8xf32>
  %factors = linalg.transpose ins(%stored : tensor<8x256xf32>) outs(%empty : tensor<256x8xf32>) permutation = [1, 0]
  %a = fp8.assemble %codes, %factors : tensor<256x1024xf8E4M3FN>, tensor<256x8xf32> -> !a
  %0 = fp8.matmul %a, %b
    {fp8_gpu.config = #fp8_sm90.gemm<tile_m = 128, tile_n = 128, stages = 4>} : !a, !b -> tensor<256x512xbf16>
  return %0 : tensor<256x512xbf16>
}

// CHECK: name = "scale_a", element = f32, rank = 2, access = read, alignment = 16
// CHECK-SAME: #fp8_gpu.tensor_map<1, box = [128, 1], swizzle = 0, l2 = 128>
// CHECK-LABEL: llvm.func @fp8_matmul
// 128 times 128 bytes of both, and 128 factors.
// CHECK: nvvm.mbarrier.arrive.expect_tx %{{.*}}, %c33280_i32
// CHECK-COUNT-3: nvvm.cp.async.bulk.tensor.shared.cluster.global
// When stages have zeros, whole boxes or what is left of them.
// CHECK: nvvm.mbarrier.arrive.expect_tx
// CHECK-COUNT-5: nvvm.cp.async.bulk.tensor.shared.cluster.global
// CHECK-NOT: nvvm.cp.async.bulk.tensor.shared.cluster.global
// CHECK-COUNT-1: nvvm.cp.async.shared.global
// CHECK-NOT: nvvm.cp.async.shared.global

// -----

// With K innermost, the warp copies both.

!a = !fp8.scaled<256x1024xf8E4M3FN, block = [1, 128], scale = f32>
!b = !fp8.scaled<512x1024xf8E4M3FN, block = [128, 128], scale = f32>
func.func @by_a_warp(%a: !a, %b: !b) -> tensor<256x512xbf16> {
  %0 = fp8.matmul %a, %b
    {fp8_gpu.config = #fp8_sm90.gemm<tile_m = 128, tile_n = 128, stages = 4>} : !a, !b -> tensor<256x512xbf16>
  return %0 : tensor<256x512xbf16>
}

// CHECK-LABEL: llvm.func @fp8_matmul
// CHECK: nvvm.mbarrier.arrive.expect_tx %{{.*}}, %c32768_i32
// CHECK-COUNT-2: nvvm.cp.async.bulk.tensor.shared.cluster.global
// CHECK-COUNT-5: nvvm.cp.async.shared.global
// CHECK-NOT: nvvm.cp.async.shared.global

// -----

// Tiles of 96 columns cut blocks of 128: of two factors, each 32 columns take the
// first where the tile's first column in its block is in front of 128, 96, 64.

!a = !fp8.scaled<256x1024xf8E4M3FN, block = [1, 128], scale = f32>
!b = !fp8.scaled<512x1024xf8E4M3FN, block = [128, 128], scale = f32>
func.func @cut_blocks(%a: !a, %b: !b) -> tensor<256x512xbf16> {
  %0 = fp8.matmul %a, %b
    {fp8_gpu.config = #fp8_sm90.gemm<tile_m = 128, tile_n = 96, stages = 4>} : !a, !b -> tensor<256x512xbf16>
  return %0 : tensor<256x512xbf16>
}

// CHECK-LABEL: llvm.func @fp8_matmul
// CHECK-COUNT-4: arith.mulf
// CHECK: %[[FIRST:.*]] = nvvm.inline_ptx "mov.b32 {$w0}, {$r0};"
// CHECK: %[[IN_FIRST:.*]] = arith.cmpi ult, %{{.*}}, %c128_i32
// CHECK: arith.select %[[IN_FIRST]]
// CHECK: %[[IN_FIRST:.*]] = arith.cmpi ult, %{{.*}}, %c96_i32
// CHECK: arith.select %[[IN_FIRST]]
// CHECK: %[[IN_FIRST:.*]] = arith.cmpi ult, %{{.*}}, %c64_i32
// CHECK: arith.select %[[IN_FIRST]]

// -----

// Rows of a group begin anywhere, and bulk copies at multiples of four factors:
// they bring four more, and 260 take two.

!a = !fp8.scaled<512x1024xf8E4M3FN, block = [1, 128], scale = f32>
!b = !fp8.scaled<4x512x1024xf8E4M3FN, block = [1, 128, 128], scale = f32>
func.func @of_groups(%codes: tensor<512x1024xf8E4M3FN>, %stored: tensor<8x512xf32>, %b: !b, %offsets: tensor<5xi32>) -> tensor<512x512xbf16> {
  %empty = tensor.empty() : tensor<512x8xf32>
  %factors = linalg.transpose ins(%stored : tensor<8x512xf32>) outs(%empty : tensor<512x8xf32>) permutation = [1, 0]
  %a = fp8.assemble %codes, %factors : tensor<512x1024xf8E4M3FN>, tensor<512x8xf32> -> !a
  %0 = fp8.grouped_matmul %a, %b offsets(%offsets : tensor<5xi32>)
    {fp8_gpu.config = #fp8_sm90.gemm<tile_m = 256, tile_n = 64, stages = 3>} : !a, !b -> tensor<512x512xbf16>
  return %0 : tensor<512x512xbf16>
}

// CHECK: name = "scale_a", element = f32, rank = 2, access = read, alignment = 16
// CHECK-SAME: #fp8_gpu.tensor_map<1, box = [160, 1], swizzle = 0, l2 = 128>
// CHECK-LABEL: llvm.func @fp8_matmul
// 320 times 128 bytes of both, and 320 factors.
// CHECK: nvvm.mbarrier.arrive.expect_tx %{{.*}}, %c42240_i32
// CHECK-COUNT-4: nvvm.cp.async.bulk.tensor.shared.cluster.global
// CHECK: nvvm.mbarrier.arrive.expect_tx
// CHECK-COUNT-5: nvvm.cp.async.bulk.tensor.shared.cluster.global
// CHECK-NOT: nvvm.cp.async.bulk.tensor.shared.cluster.global
