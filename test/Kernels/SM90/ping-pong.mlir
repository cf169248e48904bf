// RUN: fp8-opt --fp8-set-target=chip=sm_90a --fp8-build-kernels --canonicalize %s | FileCheck %s

// Each warpgroup waits for its turn, and gives it away when it has issued a whole
// tile.

!x = !fp8.scaled<?x4096xf8E4M3FN, block = [*, *], scale = f32>
!w = !fp8.scaled<4096x4096xf8E4M3FN, block = [*, *], scale = f32>
func.func @matmul(%a: !x, %b: !w) -> tensor<?x4096xbf16> {
  %0 = fp8.matmul %a, %b accumulate = fast
    {fp8_gpu.config = #fp8_sm90.gemm<tile_m = 64, tile_n = 16, stages = 4, schedule = ping_pong, pending = 1>}
    : !x, !w -> tensor<?x4096xbf16>
  return %0 : tensor<?x4096xbf16>
}

// CHECK-LABEL: llvm.func @fp8_matmul
// CHECK-DAG: %[[FOUR:.*]] = arith.constant 4 : i32
// CHECK-DAG: %[[FIVE:.*]] = arith.constant 5 : i32
// CHECK-DAG: %[[BOTH:.*]] = arith.constant 256 : i32
// CHECK: nvvm.setmaxregister increase
// CHECK-NEXT: %[[GROUP:.*]] = arith.shrui
// The second one lets the first begin.
// CHECK: nvvm.barrier.arrive id = %[[FOUR]] number_of_threads = %[[BOTH]]
// CHECK: scf.for
// CHECK: %[[MINE:.*]] = arith.addi %[[GROUP]], %[[FOUR]]
// CHECK: nvvm.barrier id = %[[MINE]] number_of_threads = %[[BOTH]]
// CHECK: nvvm.wgmma.mma_async
// The next block is under way before the last one's stage is given back.
// CHECK: nvvm.wgmma.wait.group.sync.aligned 1
// CHECK: %[[OTHER:.*]] = arith.subi %[[FIVE]], %[[GROUP]]
// CHECK: nvvm.barrier.arrive id = %[[OTHER]] number_of_threads = %[[BOTH]]
// CHECK: wgmma.wait_group.sync.aligned 0
// CHECK: nvvm.stmatrix
