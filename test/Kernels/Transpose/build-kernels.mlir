// RUN: fp8-opt --fp8-set-target=chip=sm_90a --fp8-build-kernels --canonicalize --split-input-file %s | FileCheck %s

// A tile of 128 x 128 codes: warps read words of four rows each, transpose the
// squares of four words in registers, and swizzle them through shared memory.

// CHECK: #[[TILES:.*]] = affine_map<()[s0, s1] -> ((s0 ceildiv 128) * (s1 ceildiv 128))>
// CHECK: #fp8_gpu.launch<arguments = [#fp8_gpu.argument<name = "x", element = f8E4M3FN, rank = 2, access = read, alignment = 4>, #fp8_gpu.argument<name = "y", element = f8E4M3FN, rank = 2, access = write, alignment = 4>], extents = [#fp8_gpu.extent<"rows", 0, 0>, #fp8_gpu.extent<"columns", 0, 1>],
// CHECK-SAME: params = [#fp8_gpu.pointer<0>, #fp8_gpu.stride<0, 0>, #fp8_gpu.pointer<1>, #fp8_gpu.stride<1, 0>,
// CHECK-SAME: grid = #[[TILES]], block = 256, shared_bytes = 16384, overlap = true

// CHECK-LABEL: func.func @codes
// CHECK: fp8_gpu.kernel = @fp8_kernels::@fp8_transpose_sm90a_b1_w8
// CHECK-LABEL: llvm.func @fp8_transpose_sm90a_b1_w8(
// CHECK-SAME: fp8_gpu.config = #fp8_transpose.config<warps = 8>
// CHECK-SAME: nvvm.reqntid = array<i32: 256, 1, 1>
// CHECK: nvvm.griddepcontrol wait
// CHECK-COUNT-16: llvm.load %{{.*}} : !llvm.ptr<1> -> i32
// CHECK-NOT: !llvm.ptr<1> -> i32
// CHECK-COUNT-8: nvvm.prmt
// CHECK: llvm.store %{{.*}} : i32, !llvm.ptr<3>
// CHECK: nvvm.barrier
// CHECK: %[[WORD:.*]] = llvm.load %{{.*}} : !llvm.ptr<3> -> i32
// CHECK: scf.if
// CHECK: llvm.store %[[WORD]], %{{.*}} : i32, !llvm.ptr<1>
func.func @codes(%q: !fp8.scaled<256x64xf8E4M3FN, block = [*, *], scale = f32>) -> !fp8.scaled<64x256xf8E4M3FN, block = [*, *], scale = f32> {
  %0 = fp8.transpose %q permutation = [1, 0] {fp8_gpu.config = #fp8_transpose.config<warps = 8>} : !fp8.scaled<256x64xf8E4M3FN, block = [*, *], scale = f32>
  return %0 : !fp8.scaled<64x256xf8E4M3FN, block = [*, *], scale = f32>
}

// -----

// Words need no transposing in registers; each matrix of a batch has its tiles.

// CHECK: #[[TILES:.*]] = affine_map<()[s0, s1, s2] -> (((s0 ceildiv 32) * (s1 ceildiv 32)) * s2)>
// CHECK: extents = [#fp8_gpu.extent<"rows", 0, 1>, #fp8_gpu.extent<"columns", 0, 2>, #fp8_gpu.extent<"batch", 0, 0>]
// CHECK: #fp8_gpu.stride<0, 1>, #fp8_gpu.stride<0, 0>
// CHECK-SAME: grid = #[[TILES]], block = 64, shared_bytes = 4096
// CHECK-LABEL: llvm.func @fp8_transpose_sm90a_b4_batch_w2(
// CHECK-NOT: nvvm.prmt
func.func @words(%x: tensor<3x5x7xf32>, %y: tensor<3x7x5xf32>) -> tensor<3x7x5xf32> {
  %0 = linalg.transpose ins(%x : tensor<3x5x7xf32>) outs(%y : tensor<3x7x5xf32>) permutation = [0, 2, 1] {fp8_gpu.config = #fp8_transpose.config<warps = 2>}
  return %0 : tensor<3x7x5xf32>
}

// -----

// One kernel takes all extents.

// CHECK-LABEL: func.func @share
// CHECK: fp8_gpu.kernel = @fp8_kernels::@[[KERNEL:fp8_transpose_sm90a_b2_w4]]}
// CHECK: fp8_gpu.kernel = @fp8_kernels::@[[KERNEL]]}
// CHECK: llvm.func @[[KERNEL]](
// CHECK-NOT: llvm.func
func.func @share(%x: tensor<8x64xbf16>, %y: tensor<64x8xbf16>, %u: tensor<2x6xbf16>, %v: tensor<6x2xbf16>) -> (tensor<64x8xbf16>, tensor<6x2xbf16>) {
  %0 = linalg.transpose ins(%x : tensor<8x64xbf16>) outs(%y : tensor<64x8xbf16>) permutation = [1, 0] {fp8_gpu.config = #fp8_transpose.config<warps = 4>}
  %1 = linalg.transpose ins(%u : tensor<2x6xbf16>) outs(%v : tensor<6x2xbf16>) permutation = [1, 0] {fp8_gpu.config = #fp8_transpose.config<warps = 4>}
  return %0, %1 : tensor<64x8xbf16>, tensor<6x2xbf16>
}
