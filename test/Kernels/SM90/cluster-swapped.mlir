// RUN: fp8-opt --fp8-set-target=chip=sm_90a --fp8-build-kernels --canonicalize %s | FileCheck %s

// With swapped operands two blocks compute tiles that are neighbours along N, and
// share A: each brings 16 of its 32 rows to both.

!x = !fp8.scaled<?x4000xf8E4M3FN, block = [*, *], scale = f32>
!w = !fp8.scaled<4096x4000xf8E4M3FN, block = [*, *], scale = f32>
func.func @matmul(%a: !x, %b: !w) -> tensor<?x4096xbf16> {
  %0 = fp8.matmul %a, %b accumulate = fast
    {fp8_gpu.config = #fp8_sm90.gemm<tile_m = 32, tile_n = 64, stages = 2, consumers = 1, swap_ab = true, store = direct, cluster_n = 2>}
    : !x, !w -> tensor<?x4096xbf16>
  return %0 : tensor<?x4096xbf16>
}

// CHECK-DAG: #[[CLUSTERS:.*]] = affine_map<()[s0, s1, s2] -> ((s0 ceildiv 32) * (s1 ceildiv 128))>
// CHECK: #fp8_gpu.launch<{{.*}}params = [#fp8_gpu.tensor_map<0, box = [128, 16], swizzle = 128, l2 = 128>, #fp8_gpu.tensor_map<2, box = [128, 64], swizzle = 128, l2 = 128>, {{.*}}grid = #[[CLUSTERS]], block = 256, cluster = 2,
// CHECK-LABEL: llvm.func @fp8_matmul_sm90a_e4m3_e4m3_bf16_tensor_tensor_fast_32x64_s2c1_swap_cluster2_g16(
// CHECK-SAME: %[[A:[a-z0-9]+]]: !llvm.ptr {{{[^}]*}}}, %[[B:[a-z0-9]+]]: !llvm.ptr
// CHECK-DAG: %[[HALF:.*]] = arith.constant 16 : i32
// CHECK-DAG: %[[PAIR:.*]] = arith.constant 128 : i32
// CHECK-DAG: %[[ROWS:.*]] = arith.constant 64 : i32
// CHECK: %[[RANK:.*]] = nvvm.read.ptx.sreg.cluster.ctarank

// The producer: its own rows of B, its half of A for both.
// CHECK: nvvm.setmaxregister decrease
// CHECK: %[[FIRST_N:.*]] = arith.muli %{{.*}}, %[[PAIR]]
// CHECK: %[[MINE:.*]] = arith.muli %[[RANK]], %[[ROWS]]
// CHECK: %[[N:.*]] = arith.addi %[[FIRST_N]], %[[MINE]]
// CHECK: nvvm.cp.async.bulk.tensor.shared.cluster.global %{{.*}}, %[[B]], %{{.*}}, box[%{{.*}}, %[[N]]] {isCTAOnly = true}
// CHECK: arith.muli %[[RANK]], %[[HALF]]
// CHECK: nvvm.cp.async.bulk.tensor.shared.cluster.global %{{.*}}, %[[A]], %{{.*}} multicast_mask
