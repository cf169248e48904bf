// RUN: fp8-opt --fp8-set-target=chip=sm_90a --fp8-build-kernels --canonicalize --split-input-file %s | FileCheck %s

// 2 x 4 blocks with tiles of 64 x 64: the four of a row share A, of which each
// brings 16 rows, the two of a column share B, of which each brings 32.

!x = !fp8.scaled<?x4096xf8E4M3FN, block = [*, *], scale = f32>
!w = !fp8.scaled<4096x4096xf8E4M3FN, block = [*, *], scale = f32>
func.func @both(%a: !x, %b: !w) -> tensor<?x4096xbf16> {
  %0 = fp8.matmul %a, %b accumulate = fast
    {fp8_gpu.config = #fp8_sm90.gemm<tile_m = 64, tile_n = 64, stages = 2, consumers = 1, group = 6, cluster_m = 2, cluster_n = 4>}
    : !x, !w -> tensor<?x4096xbf16>
  return %0 : tensor<?x4096xbf16>
}

// CHECK-DAG: #[[CLUSTERS:.*]] = affine_map<()[s0, s1, s2] -> ((s0 ceildiv 128) * (s1 ceildiv 256))>
// CHECK: #fp8_gpu.launch<{{.*}}params = [#fp8_gpu.tensor_map<0, box = [128, 16], swizzle = 128, l2 = 128>, #fp8_gpu.tensor_map<2, box = [128, 32], swizzle = 128, l2 = 128>, {{.*}}grid = #[[CLUSTERS]], block = 256, cluster = 8,
// CHECK-LABEL: llvm.func @fp8_matmul_sm90a_e4m3_e4m3_bf16_tensor_tensor_fast_64x64_s2c1_cluster2x4_g6(
// CHECK-SAME: %[[A:[a-z0-9]+]]: !llvm.ptr {{{[^}]*}}}, %[[B:[a-z0-9]+]]: !llvm.ptr {{{[^}]*}}}, %[[D:[a-z0-9]+]]: !llvm.ptr
// CHECK-SAME: nvvm.cluster_dim = array<i32: 8, 1, 1>
// CHECK-DAG: %[[QUARTER_BYTES:.*]] = arith.constant 2048 : i32
// CHECK-DAG: %[[HALF_BYTES:.*]] = arith.constant 4096 : i32
// CHECK-DAG: %[[COLUMN:.*]] = arith.constant 3 : i16
// CHECK-DAG: %[[ROW:.*]] = arith.constant 85 : i16
// CHECK-DAG: %[[WARPS:.*]] = arith.constant 20 : i32
// CHECK-DAG: %[[FIVE:.*]] = arith.constant 5 : i32
// CHECK-DAG: %[[TWO:.*]] = arith.constant 2 : i32
// CHECK-DAG: %[[QUARTER:.*]] = arith.constant 16 : i32
// CHECK-DAG: %[[HALF:.*]] = arith.constant 32 : i32
// CHECK-DAG: %[[TILE:.*]] = arith.constant 64 : i32
// CHECK-DAG: %[[CLUSTER_M:.*]] = arith.constant 128 : i32
// CHECK-DAG: %[[CLUSTER_N:.*]] = arith.constant 256 : i32
// CHECK-DAG: %[[BYTES:.*]] = arith.constant 16384 : i32

// CHECK: %[[RANK:.*]] = nvvm.read.ptx.sreg.cluster.ctarank
// CHECK-NEXT: %[[C:.*]] = arith.divui %[[RANK]], %[[TWO]]
// CHECK-NEXT: %[[R:.*]] = arith.remui %[[RANK]], %[[TWO]]

// A stage is empty when the four warps of all that read it have given it back:
// this block, the other of its column, and three of its row.
// CHECK: nvvm.mbarrier.init %{{.*}}, %[[WARPS]]

// A warp gives a stage back to the five that write to it: lanes 0 and 1 to the
// blocks of its column, the others to those of its row but itself.
// CHECK: nvvm.setmaxregister increase
// CHECK: %[[MINE:.*]] = arith.cmpi ult, %[[LANE:.*]], %[[FIVE]]
// CHECK: scf.if %[[MINE]]
// CHECK: %[[FIRST:.*]] = arith.muli %[[C]], %[[TWO]]
// CHECK-NEXT: %[[IN_COLUMN:.*]] = arith.addi %[[LANE]], %[[FIRST]]
// CHECK-NEXT: %[[LEFT:.*]] = arith.subi %[[LANE]], %[[TWO]]
// CHECK-NEXT: %[[BEFORE:.*]] = arith.cmpi ult, %[[LEFT]], %[[C]]
// CHECK-NEXT: %[[RIGHT:.*]] = arith.addi %[[LANE]], %c-1_i32
// CHECK-NEXT: %[[OTHER:.*]] = arith.select %[[BEFORE]], %[[LEFT]], %[[RIGHT]]
// CHECK-NEXT: %[[OTHERS:.*]] = arith.muli %[[OTHER]], %[[TWO]]
// CHECK-NEXT: %[[IN_ROW:.*]] = arith.addi %[[OTHERS]], %[[R]]
// CHECK-NEXT: %[[IS_COLUMN:.*]] = arith.cmpi ult, %[[LANE]], %[[TWO]]
// CHECK-NEXT: %[[BLOCK:.*]] = arith.select %[[IS_COLUMN]], %[[IN_COLUMN]], %[[IN_ROW]]
// CHECK-NEXT: nvvm.mapa %{{.*}}, %[[BLOCK]]

// This block's tile of the cluster is at [R, C]; it brings part C of A to the
// blocks of its row, R + 2 i, of B part R to those of its column, 2 C + i.
// CHECK: nvvm.setmaxregister decrease
// CHECK: %[[FIRST_M:.*]] = arith.muli %{{.*}}, %[[CLUSTER_M]]
// CHECK-NEXT: %[[BELOW:.*]] = arith.muli %[[R]], %[[TILE]]
// CHECK-NEXT: %[[M:.*]] = arith.addi %[[FIRST_M]], %[[BELOW]]
// CHECK: %[[FIRST_N:.*]] = arith.muli %{{.*}}, %[[CLUSTER_N]]
// CHECK-NEXT: %[[BESIDE:.*]] = arith.muli %[[C]], %[[TILE]]
// CHECK-NEXT: %[[N:.*]] = arith.addi %[[FIRST_N]], %[[BESIDE]]
// CHECK: %[[R16:.*]] = arith.trunci %[[R]]
// CHECK-NEXT: %[[ROW_BLOCKS:.*]] = arith.shli %[[ROW]], %[[R16]]
// CHECK-NEXT: %[[C2:.*]] = arith.muli %[[C]], %[[TWO]]
// CHECK-NEXT: %[[C16:.*]] = arith.trunci %[[C2]]
// CHECK-NEXT: %[[COLUMN_BLOCKS:.*]] = arith.shli %[[COLUMN]], %[[C16]]
// CHECK: nvvm.mbarrier.arrive.expect_tx %{{.*}}, %[[BYTES]]
// CHECK: %[[A_PART:.*]] = arith.muli %[[C]], %[[QUARTER]]
// CHECK-NEXT: arith.muli %[[C]], %[[QUARTER_BYTES]]
// CHECK: %[[A_ROW:.*]] = arith.addi %[[M]], %[[A_PART]]
// CHECK: nvvm.cp.async.bulk.tensor.shared.cluster.global %{{.*}}, %[[A]], %{{.*}}, box[%{{.*}}, %[[A_ROW]]] multicast_mask = %[[ROW_BLOCKS]]
// CHECK: %[[B_PART:.*]] = arith.muli %[[R]], %[[HALF]]
// CHECK-NEXT: arith.muli %[[R]], %[[HALF_BYTES]]
// CHECK: %[[B_ROW:.*]] = arith.addi %[[N]], %[[B_PART]]
// CHECK: nvvm.cp.async.bulk.tensor.shared.cluster.global %{{.*}}, %[[B]], %{{.*}}, box[%{{.*}}, %[[B_ROW]]] multicast_mask = %[[COLUMN_BLOCKS]]

// -----

// Along the columns alone: the pair shares A.

!x = !fp8.scaled<?x4096xf8E4M3FN, block = [*, *], scale = f32>
!w = !fp8.scaled<4096x4096xf8E4M3FN, block = [*, *], scale = f32>
func.func @cols(%a: !x, %b: !w) -> tensor<?x4096xbf16> {
  %0 = fp8.matmul %a, %b accumulate = fast
    {fp8_gpu.config = #fp8_sm90.gemm<tile_m = 64, tile_n = 64, stages = 2, consumers = 1, cluster_n = 2>}
    : !x, !w -> tensor<?x4096xbf16>
  return %0 : tensor<?x4096xbf16>
}

// CHECK-DAG: #[[CLUSTERS:.*]] = affine_map<()[s0, s1, s2] -> ((s0 ceildiv 64) * (s1 ceildiv 128))>
// CHECK: #fp8_gpu.launch<{{.*}}params = [#fp8_gpu.tensor_map<0, box = [128, 32], {{.*}}>, #fp8_gpu.tensor_map<2, box = [128, 64], {{.*}}grid = #[[CLUSTERS]], block = 256, cluster = 2,
// CHECK-LABEL: llvm.func @fp8_matmul_sm90a_e4m3_e4m3_bf16_tensor_tensor_fast_64x64_s2c1_cluster1x2_g16(
// CHECK-SAME: %[[A:[a-z0-9]+]]: !llvm.ptr {{{[^}]*}}}, %[[B:[a-z0-9]+]]: !llvm.ptr
// CHECK: %[[PAIR:.*]] = arith.constant 3 : i16
// CHECK: nvvm.setmaxregister decrease
// CHECK: nvvm.cp.async.bulk.tensor.shared.cluster.global %{{.*}}, %[[A]], {{.*}} multicast_mask = %[[PAIR]]
// CHECK: nvvm.cp.async.bulk.tensor.shared.cluster.global %{{.*}}, %[[B]], {{.*}} {isCTAOnly = true}

// -----

// A tile of 16 rows has no parts of whole swizzle atoms for four blocks: the first
// brings it for all.

!x = !fp8.scaled<?x4096xf8E4M3FN, block = [*, *], scale = f32>
!w = !fp8.scaled<4096x4096xf8E4M3FN, block = [*, *], scale = f32>
func.func @whole(%a: !x, %b: !w) -> tensor<?x4096xbf16> {
  %0 = fp8.matmul %a, %b accumulate = fast
    {fp8_gpu.config = #fp8_sm90.gemm<tile_m = 16, tile_n = 64, stages = 2, consumers = 1, swap_ab = true, store = direct, cluster_n = 4>}
    : !x, !w -> tensor<?x4096xbf16>
  return %0 : tensor<?x4096xbf16>
}

// CHECK: #fp8_gpu.launch<{{.*}}params = [#fp8_gpu.tensor_map<0, box = [128, 16], {{.*}}>, #fp8_gpu.tensor_map<2, box = [128, 64], {{.*}}block = 256, cluster = 4,
// CHECK-LABEL: llvm.func @fp8_matmul_sm90a_e4m3_e4m3_bf16_tensor_tensor_fast_16x64_s2c1_swap_cluster4_g16(
// CHECK-SAME: %[[A:[a-z0-9]+]]: !llvm.ptr {{{[^}]*}}}, %[[B:[a-z0-9]+]]: !llvm.ptr
// CHECK-DAG: %[[ALL:.*]] = arith.constant 15 : i16
// CHECK-DAG: %[[THREE:.*]] = arith.constant 3 : i32
// CHECK-DAG: %[[ZERO:.*]] = arith.constant 0 : i32
// CHECK: %[[RANK:.*]] = nvvm.read.ptx.sreg.cluster.ctarank

// It waits for the warps of all, the others for their own; so a warp gives a stage
// back to the first block and to its own, which the first may be.
// CHECK: %[[IS_FIRST:.*]] = arith.cmpi eq, %[[RANK]], %[[ZERO]]
// CHECK-NEXT: %[[OTHERS:.*]] = arith.select %[[IS_FIRST]], %[[THREE]], %[[ZERO]]
// CHECK-NEXT: %[[BLOCKS:.*]] = arith.addi %[[OTHERS]], %{{.*}}
// CHECK-NEXT: %[[ARRIVALS:.*]] = arith.muli %[[BLOCKS]], %{{.*}}
// CHECK: nvvm.mbarrier.init %{{.*}}, %[[ARRIVALS]]
// CHECK: nvvm.setmaxregister increase
// CHECK: %[[TO_FIRST:.*]] = arith.cmpi eq, %[[LANE:.*]], %[[ZERO]]
// CHECK-NEXT: %[[TO_OWN:.*]] = arith.cmpi eq, %[[LANE]], %[[RANK]]
// CHECK-NEXT: %[[ARRIVES:.*]] = arith.select %[[TO_FIRST]], %{{.*}}, %[[TO_OWN]]
// CHECK-NEXT: scf.if %[[ARRIVES]]
// CHECK: nvvm.mapa %{{.*}}, %[[LANE]]
// CHECK: nvvm.setmaxregister decrease
// CHECK: nvvm.cp.async.bulk.tensor.shared.cluster.global %{{.*}}, %[[B]], {{.*}} {isCTAOnly = true}
// CHECK: %[[FIRST:.*]] = arith.cmpi eq, %[[RANK]], %c0_i32
// CHECK-NEXT: scf.if %[[FIRST]]
// CHECK: nvvm.cp.async.bulk.tensor.shared.cluster.global %{{.*}}, %[[A]], {{.*}} multicast_mask = %[[ALL]]

// -----

// Parts of K are tiles of the cluster as any others.

!x = !fp8.scaled<?x4096xf8E4M3FN, block = [*, *], scale = f32>
!w = !fp8.scaled<4096x4096xf8E4M3FN, block = [*, *], scale = f32>
func.func @split(%a: !x, %b: !w) -> tensor<?x4096xbf16> {
  %0 = fp8.matmul %a, %b accumulate = fast
    {fp8_gpu.config = #fp8_sm90.gemm<tile_m = 64, tile_n = 64, stages = 2, consumers = 1, split_k = 4, cluster_m = 2, cluster_n = 2>}
    : !x, !w -> tensor<?x4096xbf16>
  return %0 : tensor<?x4096xbf16>
}

// CHECK-DAG: #[[CLUSTERS:.*]] = affine_map<()[s0, s1, s2] -> (((s0 ceildiv 128) * (s1 ceildiv 128)) * 4)>
// CHECK: #fp8_gpu.launch<{{.*}}grid = #[[CLUSTERS]], block = 256, cluster = 4,{{.*}}workspaces = [
// CHECK-LABEL: llvm.func @fp8_matmul_sm90a_e4m3_e4m3_bf16_tensor_tensor_fast_64x64_s2c1_k4_cluster2x2_g16(
