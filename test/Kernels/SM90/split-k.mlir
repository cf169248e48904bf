// RUN: fp8-opt --fp8-set-target=chip=sm_90a --fp8-build-kernels --canonicalize %s | FileCheck %s

// 16 rows of A on the side that comes in 8s, B on the other; three parts of K.

!x = !fp8.scaled<16x4096xf8E5M2, block = [*, *], scale = f32>
!w = !fp8.scaled<4096x4096xf8E4M3FN, block = [*, *], scale = f32>
func.func @decode(%a: !x, %b: !w) -> tensor<16x4096xbf16> {
  %0 = fp8.matmul %a, %b accumulate = fast
    {fp8_gpu.config = #fp8_sm90.gemm<tile_m = 16, tile_n = 64, stages = 4, consumers = 1, split_k = 3, swap_ab = true, store = direct>}
    : !x, !w -> tensor<16x4096xbf16>
  return %0 : tensor<16x4096xbf16>
}

// A tile's parts of 16 x 64 sums, and its counter, which is 0 between launches.
// CHECK-DAG: #[[PARTS:.*]] = affine_map<()[s0, s1, s2] -> (((s0 ceildiv 16) * (s1 ceildiv 64)) * 12288)>
// CHECK-DAG: #[[COUNTERS:.*]] = affine_map<()[s0, s1, s2] -> (((s0 ceildiv 16) * (s1 ceildiv 64)) * 4)>
// CHECK-DAG: #[[BLOCKS:.*]] = affine_map<()[s0, s1, s2] -> (((s0 ceildiv 16) * (s1 ceildiv 64)) * 3)>
// CHECK: #fp8_gpu.launch<{{.*}}#fp8_gpu.scratch<0>, #fp8_gpu.scratch<1>, {{.*}}grid = #[[BLOCKS]], {{.*}}workspaces = [#fp8_gpu.workspace<bytes = #[[PARTS]]>, #fp8_gpu.workspace<bytes = #[[COUNTERS]], zero = true>], flops = 
// CHECK-LABEL: llvm.func @fp8_matmul
// CHECK: llvm.mlir.zero
// The operands are swapped.
// CHECK: nvvm.wgmma.mma_async {{.*}}, <m = 64, n = 16, k = 32>, D[<f32>, <one>], A[<e4m3>, <one>, <row>], B[<e5m2>, <one>, <col>]
// Every part is left in the workspace before its block counts itself.
// CHECK-COUNT-8: llvm.store %{{.*}}, %{{.*}} : f32, !llvm.ptr<1>
// CHECK: nvvm.barrier id
// CHECK: llvm.fence syncscope("device") acq_rel
// CHECK: %[[COUNT:.*]] = llvm.atomicrmw uinc_wrap %{{.*}}, %{{.*}} syncscope("device") acq_rel
// CHECK: llvm.fence syncscope("device") acq_rel
// CHECK: llvm.store %[[COUNT]], %[[FLAG:.*]] : i32, !llvm.ptr<3>
// CHECK: nvvm.barrier id
// CHECK: %[[SEEN:.*]] = llvm.load %[[FLAG]]
// CHECK: %[[LAST:.*]] = arith.cmpi eq, %[[SEEN]]
// CHECK: scf.if %[[LAST]]
// In the order of the parts, whoever comes last.
// CHECK: scf.for unsigned %{{.*}} = %{{.*}} to %{{.*}} step %{{.*}}
// CHECK-COUNT-8: arith.addf
// CHECK: st.global.b16
