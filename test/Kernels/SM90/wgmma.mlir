// RUN: fp8-opt --fp8-set-target=chip=sm_90a --fp8-build-kernels --canonicalize --split-input-file %s | FileCheck %s

// Descriptor: stride 1024 >> 4 at bit 32, leading 1 at bit 16, swizzle 1 at bit
// 62. K advances by 32 bytes, 2 in units of 16. The first instruction of a tile
// overwrites; the registers are read through the wait.

!x = !fp8.scaled<?x4096xf8E5M2, block = [*, *], scale = f32>
!w = !fp8.scaled<4096x4096xf8E4M3FN, block = [*, *], scale = f32>
func.func @fast(%a: !x, %b: !w) -> tensor<?x4096xbf16> {
  %0 = fp8.matmul %a, %b accumulate = fast
    {fp8_gpu.config = #fp8_sm90.gemm<tile_m = 64, tile_n = 8, stages = 2, consumers = 1>}
    : !x, !w -> tensor<?x4096xbf16>
  return %0 : tensor<?x4096xbf16>
}

// CHECK-LABEL: llvm.func @fp8_matmul_sm90a_e5m2_e4m3_bf16_tensor_tensor_fast
// CHECK-DAG: %[[HIGH:.*]] = arith.constant 4611686293305294848 : i64
// CHECK-DAG: %[[LOW:.*]] = arith.constant 65536 : i32
// CHECK-DAG: %[[TWO:.*]] = arith.constant 2 : i32
// CHECK-DAG: %[[UNDEF:.*]] = llvm.mlir.undef : !llvm.struct<(f32, f32, f32, f32)>
// CHECK: arith.ori %{{.*}}, %[[LOW]]
// CHECK: nvvm.wgmma.fence.aligned
// CHECK-NOT: nvvm.shfl.sync
// CHECK: %[[A_WIDE:.*]] = arith.extui %[[A_LOW:.*]] : i32 to i64
// CHECK: %[[A:.*]] = arith.ori %[[A_WIDE]], %[[HIGH]]
// CHECK: %[[B_WIDE:.*]] = arith.extui %[[B_LOW:.*]] : i32 to i64
// CHECK: %[[B:.*]] = arith.ori %[[B_WIDE]], %[[HIGH]]
// CHECK: nvvm.wgmma.mma_async %[[A]], %[[B]], %[[UNDEF]], <m = 64, n = 8, k = 32>, D[<f32>, <zero>], A[<e5m2>, <one>, <row>], B[<e4m3>, <one>, <col>]
// CHECK: %[[A1:.*]] = arith.addi %[[A_LOW]], %[[TWO]]
// CHECK: %[[B1:.*]] = arith.addi %[[B_LOW]], %[[TWO]]
// CHECK: %[[A1_WIDE:.*]] = arith.extui %[[A1]]
// CHECK: %[[A1_FULL:.*]] = arith.ori %[[A1_WIDE]], %[[HIGH]]
// CHECK: %[[B1_WIDE:.*]] = arith.extui %[[B1]]
// CHECK: %[[B1_FULL:.*]] = arith.ori %[[B1_WIDE]], %[[HIGH]]
// CHECK: nvvm.wgmma.mma_async %[[A1_FULL]], %[[B1_FULL]], %{{.*}}, <m = 64, n = 8, k = 32>, D[<f32>, <one>]
// CHECK: nvvm.wgmma.mma_async
// CHECK: nvvm.wgmma.mma_async
// CHECK: nvvm.wgmma.commit.group.sync.aligned
// CHECK: scf.for
// CHECK: nvvm.wgmma.fence.aligned
// CHECK-COUNT-4: D[<f32>, <one>]
// CHECK-NOT: <zero>
// CHECK: llvm.inline_asm has_side_effects asm_dialect = att "wgmma.wait_group.sync.aligned 0;", "=f,=f,=f,=f,0,1,2,3"

// -----

// Promotion: each K block overwrites, and is added to f32 sums after a wait that
// its registers are tied to. Between subtiles the sums are pinned.

!x = !fp8.scaled<?x4096xf8E4M3FN, block = [*, *], scale = f32>
!w = !fp8.scaled<4096x4096xf8E4M3FN, block = [*, *], scale = f32>
func.func @promote(%a: !x, %b: !w) -> tensor<?x4096xbf16> {
  %0 = fp8.matmul %a, %b
    {fp8_gpu.config = #fp8_sm90.gemm<tile_m = 128, tile_n = 8, stages = 2, consumers = 1>}
    : !x, !w -> tensor<?x4096xbf16>
  return %0 : tensor<?x4096xbf16>
}

// The first block's products are the first sums.

// CHECK-LABEL: llvm.func @fp8_matmul_sm90a_e4m3_e4m3_bf16_tensor_tensor_promote
// CHECK-NOT: arith.maxui
// CHECK-COUNT-2: D[<f32>, <zero>]
// CHECK-NOT: arith.addf
// CHECK: D[<f32>, <zero>]
// CHECK: %[[FIRST:.*]] = llvm.inline_asm has_side_effects asm_dialect = att "wgmma.wait_group.sync.aligned 0;"
// CHECK: %[[TERM:.*]] = llvm.extractvalue %[[FIRST]][0]
// CHECK: arith.addf %[[TERM]], %{{.*}} : f32
// CHECK: llvm.inline_asm has_side_effects asm_dialect = att "", "=f,=f,=f,=f,0,1,2,3"
// CHECK: D[<f32>, <zero>]
// CHECK: llvm.inline_asm has_side_effects asm_dialect = att "wgmma.wait_group.sync.aligned 0;"
// CHECK: nvvm.mbarrier.arrive
// CHECK-COUNT-4: arith.addf

// -----

// A K that is not known may be zero: there is a block of zeros then, and the
// first one overwrites as ever.

!x = !fp8.scaled<?x?xf8E4M3FN, block = [*, *], scale = f32>
func.func @unknown_k(%a: !x, %b: !x) -> tensor<?x?xbf16> {
  %0 = fp8.matmul %a, %b
    {fp8_gpu.config = #fp8_sm90.gemm<tile_m = 128, tile_n = 8, stages = 2, consumers = 1, store = direct>}
    : !x, !x -> tensor<?x?xbf16>
  return %0 : tensor<?x?xbf16>
}

// CHECK-LABEL: llvm.func @fp8_matmul_sm90a_e4m3_e4m3_bf16_tensor_tensor_promote
// CHECK:       arith.maxui %arg8, %c1_i32

// -----

// Factors that change along K multiply what is added.

!x = !fp8.scaled<?x4096xf8E4M3FN, block = [1, 128], scale = f32>
!w = !fp8.scaled<4096x4096xf8E4M3FN, block = [128, 128], scale = f32>
func.func @block(%a: !x, %b: !w) -> tensor<?x4096xbf16> {
  %0 = fp8.matmul %a, %b
    {fp8_gpu.config = #fp8_sm90.gemm<tile_m = 128, tile_n = 8, stages = 2, consumers = 1>}
    : !x, !w -> tensor<?x4096xbf16>
  return %0 : tensor<?x4096xbf16>
}

// CHECK-LABEL: llvm.func @fp8_matmul_sm90a_e4m3_e4m3_bf16_1x128_128x128_promote
// The full barrier counts the 32 lanes that copy factors, too.
// CHECK-DAG: %[[ARRIVALS:.*]] = arith.constant 33 : i32
// CHECK: nvvm.mbarrier.init %{{.*}}, %[[ARRIVALS]]
// CHECK: wgmma.wait_group
// CHECK: llvm.intr.fma
// CHECK: wgmma.wait_group
// All lanes have read their factors when one of them gives the stage back.
// CHECK: nvvm.bar.warp.sync
// CHECK: nvvm.mbarrier.arrive
// CHECK: nvvm.setmaxregister decrease
// CHECK: nvvm.cp.async.shared.global %{{.*}}, %{{.*}}, 4, cache = ca, %{{.*}}
// CHECK: nvvm.cp.async.mbarrier.arrive %{{.*}} {noinc = true}
