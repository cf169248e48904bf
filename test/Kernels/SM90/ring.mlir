// RUN: fp8-opt --fp8-set-target=chip=sm_90a --fp8-build-kernels --canonicalize %s | FileCheck %s

// Two stages of 8192 + 2048 bytes, 4096 of staging, then the barriers: full ones
// at 36864, empty ones at 36880.

!x = !fp8.scaled<?x4096xf8E4M3FN, block = [*, *], scale = f32>
!w = !fp8.scaled<4096x4096xf8E4M3FN, block = [*, *], scale = f32>
func.func @matmul(%a: !x, %b: !w) -> tensor<?x4096xbf16> {
  %0 = fp8.matmul %a, %b accumulate = fast
    {fp8_gpu.config = #fp8_sm90.gemm<tile_m = 64, tile_n = 16, stages = 2, consumers = 1>}
    : !x, !w -> tensor<?x4096xbf16>
  return %0 : tensor<?x4096xbf16>
}

// CHECK-LABEL: llvm.func @fp8_matmul
// CHECK-SAME: %[[A:[a-z0-9]+]]: !llvm.ptr {{{[^}]*}}}, %[[B:[a-z0-9]+]]: !llvm.ptr {{{[^}]*}}}, %[[D:[a-z0-9]+]]: !llvm.ptr

// One thread initializes: the producer arrives once, each consumer warp once.
// CHECK-DAG: %[[ZERO:.*]] = arith.constant 0 : i32
// CHECK-DAG: %[[ONE:.*]] = arith.constant 1 : i32
// CHECK-DAG: %[[TWO:.*]] = arith.constant 2 : i32
// CHECK-DAG: %[[WARPS:.*]] = arith.constant 4 : i32
// CHECK-DAG: %[[BYTES:.*]] = arith.constant 10240 : i32
// CHECK-DAG: %[[EMPTY0:.*]] = arith.constant 36880 : i32
// CHECK: nvvm.elect.sync
// CHECK: %[[FULL:.*]] = llvm.getelementptr %[[SHARED:.*]][36864]
// CHECK: nvvm.mbarrier.init %[[FULL]], %[[ONE]]
// CHECK: %[[EMPTY:.*]] = llvm.getelementptr %[[SHARED]][36880]
// CHECK: nvvm.mbarrier.init %[[EMPTY]], %[[WARPS]]
// CHECK: nvvm.mbarrier.init
// CHECK: nvvm.mbarrier.init
// CHECK-NOT: nvvm.mbarrier.init
// CHECK: nvvm.fence.mbarrier.init
// CHECK: nvvm.barrier
// CHECK: nvvm.griddepcontrol wait

// The next kernel may start at once if twice the blocks have room on 132
// multiprocessors.
// CHECK: %[[BLOCKS:.*]] = nvvm.read.ptx.sreg.nctaid.x
// CHECK: %[[TWICE:.*]] = arith.muli %[[BLOCKS]], %[[TWO]]
// CHECK: %[[ROOM:.*]] = arith.cmpi ult, %[[TWICE]], %c133_i32
// CHECK: scf.if %[[ROOM]]
// CHECK-NEXT: nvvm.griddepcontrol launch_dependents

// Consumers start with phase 0.
// CHECK: nvvm.setmaxregister increase 232
// CHECK: scf.for {{.*}} iter_args(%{{.*}} = %[[ZERO]], %{{.*}} = %[[ZERO]]) -> (i32, i32)
// CHECK: nvvm.mbarrier.try_wait
// CHECK: nvvm.mbarrier.arrive %{{.*}} : !llvm.ptr<3>

// The producer starts with phase 1: fresh stages are empty.
// CHECK: nvvm.setmaxregister decrease 40
// CHECK: nvvm.elect.sync
// CHECK: scf.for {{.*}} iter_args(%{{.*}} = %[[ZERO]], %{{.*}} = %[[ONE]]) -> (i32, i32)
// CHECK: scf.for {{.*}} iter_args(%[[STAGE:.*]] = %{{.*}}, %[[PHASE:.*]] = %{{.*}}) -> (i32, i32)
// CHECK: %[[OFFSET:.*]] = arith.addi %{{.*}}, %[[EMPTY0]]
// CHECK: %[[SLOT:.*]] = llvm.getelementptr %[[SHARED]][%[[OFFSET]]]
// CHECK: nvvm.mbarrier.try_wait %[[SLOT]], %[[PHASE]]
// CHECK: nvvm.mbarrier.arrive.expect_tx %{{.*}}, %[[BYTES]]
// CHECK: nvvm.cp.async.bulk.tensor.shared.cluster.global %{{.*}}, %[[A]], %{{.*}} {isCTAOnly = true}
// CHECK: nvvm.cp.async.bulk.tensor.shared.cluster.global %{{.*}}, %[[B]], %{{.*}} {isCTAOnly = true}

// The stage after the last is the first, in the other phase.
// CHECK: %[[NEXT:.*]] = arith.addi %[[STAGE]], %[[ONE]]
// CHECK: %[[WRAPS:.*]] = arith.cmpi eq, %[[NEXT]], %[[TWO]]
// CHECK: arith.select %[[WRAPS]], %[[ZERO]], %[[NEXT]]
// CHECK: %[[FLIPPED:.*]] = arith.xori %[[PHASE]], %[[ONE]]
// CHECK: arith.select %[[WRAPS]], %[[FLIPPED]], %[[PHASE]]

// After the last copies, the next kernel may start in any case.
// CHECK: nvvm.griddepcontrol launch_dependents
// CHECK-NOT: nvvm.cp.async.bulk.tensor.shared
