// RUN: fp8-opt --fp8-set-target=chip=sm_90a --fp8-build-kernels --canonicalize %s | FileCheck %s

// The blocks that have parts of K of a tile are a cluster, whose first block
// adds them up in its shared memory: there is no workspace.

!a = !fp8.scaled<16x2048xf8E4M3FN, block = [1, *], scale = f32>
!b = !fp8.scaled<128x2048xf8E4M3FN, block = [1, *], scale = f32>

func.func @matmul(%a: !a, %b: !b) -> tensor<16x128xf32> {
  %0 = fp8.matmul %a, %b accumulate = fast
    {fp8_gpu.config = #fp8_sm90.gemm<tile_m = 16, tile_n = 64, stages = 4, consumers = 1, split_k = 4, swap_ab = true, store = direct, cluster_k = true>}
    : !a, !b -> tensor<16x128xf32>
  return %0 : tensor<16x128xf32>
}

// CHECK:       #launch = #fp8_gpu.launch<
// CHECK-NOT:   workspace
// CHECK-SAME:  cluster = 4
// CHECK-LABEL: llvm.func @fp8_matmul_sm90a_e4m3_e4m3_f32_row_row_fast_16x64_s4c1_swap_kc4_g16
// CHECK-SAME:  nvvm.cluster_dim = array<i32: 4, 1, 1>
// CHECK:       nvvm.read.ptx.sreg.cluster.ctarank
// The ring's barriers, and two: parts that are there, and slots that are free.
// CHECK:       nvvm.mbarrier.init
// CHECK:       nvvm.cluster.arrive
// CHECK:       nvvm.cluster.wait
// CHECK:       nvvm.wgmma.mma_async
// The first block waits for the others' parts.
// CHECK:       nvvm.mbarrier.try_wait {{.*}}scope = #nvvm.mem_scope<cluster>
// CHECK:       nvvm.mapa
// CHECK:       nvvm.mbarrier.arrive {{.*}}scope = #nvvm.mem_scope<cluster>
// Others leave theirs, each value with its own store.
// CHECK:       nvvm.mbarrier.try_wait {{.*}}scope = #nvvm.mem_scope<cluster>
// CHECK-COUNT-8: llvm.store {{.*}} : f32, !llvm.ptr<7>
// CHECK:       nvvm.mbarrier.arrive {{.*}}scope = #nvvm.mem_scope<cluster>
// CHECK-NOT:   llvm.atomicrmw
// CHECK:       llvm.return
