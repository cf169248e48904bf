// RUN: fp8-opt --fp8-build-kernels --canonicalize %s | FileCheck %s

// 16 rows of A on the side that comes in 8s, B on the other; three parts of K.

!x = !fp8.scaled<16x4096xf8E5M2, block = [*, *], scale = f32>
!w = !fp8.scaled<4096x4096xf8E4M3FN, block = [*, *], scale = f32>
func.func @decode(%a: !x, %b: !w) -> tensor<16x4096xbf16> {
  %0 = fp8.matmul %a, %b accumulate = fast
    {fp8.gemm_config = #fp8.gemm_config<tile_m = 16, tile_n = 64, stages = 4, consumers = 1, split_k = 3, swap_ab = true, store = direct>}
    : !x, !w -> tensor<16x4096xbf16>
  return %0 : tensor<16x4096xbf16>
}

// CHECK-LABEL: llvm.func @fp8_matmul
// CHECK-SAME: workspace_bytes_per_tile = 12288
// CHECK: llvm.mlir.zero
// The operands are swapped.
// CHECK: nvvm.wgmma.mma_async {{.*}}, <m = 64, n = 16, k = 32>, D[<f32>, <one>], A[<e4m3>, <one>, <row>], B[<e5m2>, <one>, <col>]
// Every part is left in the workspace before its block counts itself.
// CHECK-COUNT-8: llvm.store %{{.*}}, %{{.*}} : f32, !llvm.ptr<1>
// CHECK: llvm.fence syncscope("device") acq_rel
// CHECK: nvvm.barrier id
// CHECK: %[[COUNT:.*]] = llvm.atomicrmw uinc_wrap %{{.*}}, %{{.*}} syncscope("device") acq_rel
// CHECK: llvm.store %[[COUNT]], %[[FLAG:.*]] : i32, !llvm.ptr<3>
// CHECK: nvvm.barrier id
// CHECK: %[[SEEN:.*]] = llvm.load %[[FLAG]]
// CHECK: %[[LAST:.*]] = arith.cmpi eq, %[[SEEN]]
// CHECK: scf.if %[[LAST]]
// CHECK: llvm.fence syncscope("device") acq_rel
// In the order of the parts, whoever comes last.
// CHECK: scf.for unsigned %{{.*}} = %{{.*}} to %{{.*}} step %{{.*}}
// CHECK-COUNT-8: arith.addf
// CHECK: st.global.b16
