// RUN: fp8-opt --fp8-set-target=chip=sm_90a --fp8-build-kernels --canonicalize %s | FileCheck %s
// RUN: fp8-opt --fp8-set-target=chip=sm_90a --fp8-build-kernels %s -o %t
// RUN: fp8-translate --kernels-to-ptx %t | FileCheck --check-prefix=PTX %s

// Two blocks with tiles of 64 x 32, which are neighbours along M. The 32 rows of
// B are 4096 bytes of a stage: each block brings 16 of them to both.

!x = !fp8.scaled<?x4000xf8E4M3FN, block = [*, *], scale = f32>
!w = !fp8.scaled<4096x4000xf8E4M3FN, block = [*, *], scale = f32>
func.func @matmul(%a: !x, %b: !w) -> tensor<?x4096xbf16> {
  %0 = fp8.matmul %a, %b accumulate = fast
    {fp8_gpu.config = #fp8_sm90.gemm<tile_m = 64, tile_n = 32, stages = 2, consumers = 1, group = 6, cluster_m = 2>}
    : !x, !w -> tensor<?x4096xbf16>
  return %0 : tensor<?x4096xbf16>
}

// CHECK-DAG: #[[CLUSTERS:.*]] = affine_map<()[s0, s1, s2] -> ((s0 ceildiv 128) * (s1 ceildiv 32))>
// CHECK: #fp8_gpu.launch<{{.*}}params = [#fp8_gpu.tensor_map<0, box = [128, 64], swizzle = 128, l2 = 128>, #fp8_gpu.tensor_map<2, box = [128, 16], swizzle = 128, l2 = 128>, {{.*}}grid = #[[CLUSTERS]], block = 256, cluster = 2,
// CHECK-LABEL: llvm.func @fp8_matmul_sm90a_e4m3_e4m3_bf16_tensor_tensor_fast_64x32_s2c1_cluster2_g6(
// CHECK-SAME: %[[A:[a-z0-9]+]]: !llvm.ptr {{{[^}]*}}}, %[[B:[a-z0-9]+]]: !llvm.ptr {{{[^}]*}}}, %[[D:[a-z0-9]+]]: !llvm.ptr
// CHECK-SAME: nvvm.cluster_dim = array<i32: 2, 1, 1>

// A stage is empty when the consumer warps of both blocks have given it back.
// CHECK-DAG: %[[TWO:.*]] = arith.constant 2 : i32
// CHECK-DAG: %[[WARPS:.*]] = arith.constant 8 : i32
// CHECK-DAG: %[[PAIR:.*]] = arith.constant 128 : i32
// CHECK-DAG: %[[TILE:.*]] = arith.constant 64 : i32
// CHECK-DAG: %[[GROUP:.*]] = arith.constant 3 : i32
// CHECK-DAG: %[[HALF:.*]] = arith.constant 16 : i32
// CHECK-DAG: %[[HALF_BYTES:.*]] = arith.constant 2048 : i32
// CHECK-DAG: %[[BOTH:.*]] = arith.constant 3 : i16
// CHECK: %[[RANK:.*]] = nvvm.read.ptx.sreg.cluster.ctarank
// CHECK: nvvm.mbarrier.init %{{.*}}, %[[WARPS]]

// No block touches the other's barriers before they are there.
// CHECK: nvvm.fence.mbarrier.init
// CHECK-NOT: nvvm.barrier
// CHECK: nvvm.cluster.arrive
// CHECK-NEXT: nvvm.cluster.wait

// A cluster takes pairs of tiles; a group of 6 rows of tiles is 3 of pairs.
// CHECK: %[[CLUSTER:.*]] = nvvm.read.ptx.sreg.clusterid.x
// CHECK: %[[CLUSTERS:.*]] = nvvm.read.ptx.sreg.nclusterid.x
// CHECK: arith.divui
// CHECK: %[[PAIRS_M:.*]] = arith.divui %{{.*}}, %[[PAIR]]
// CHECK: %[[TILES_N:.*]] = arith.divui
// CHECK: %[[PAIRS:.*]] = arith.muli %[[PAIRS_M]], %[[TILES_N]]

// Lane i of a consumer warp arrives in block i.
// CHECK: nvvm.setmaxregister increase
// CHECK: %[[MINE:.*]] = arith.cmpi ult, %[[LANE:.*]], %[[TWO]]
// CHECK: scf.if %[[MINE]]
// CHECK: %[[THERE:.*]] = nvvm.mapa %{{.*}}, %[[LANE]] : !llvm.ptr<3> -> !llvm.ptr<7>
// CHECK-NEXT: nvvm.mbarrier.arrive %[[THERE]] : !llvm.ptr<7>

// Each block takes its own A, and its half of B for both, to the same place.
// CHECK: nvvm.setmaxregister decrease
// CHECK: scf.for unsigned %{{.*}} = %[[CLUSTER]] to %[[PAIRS]] step %[[CLUSTERS]]
// CHECK-NEXT: arith.muli %[[TILES_N]], %[[GROUP]]
// CHECK: %[[FIRST_M:.*]] = arith.muli %{{.*}}, %[[PAIR]]
// CHECK-NEXT: %[[BELOW:.*]] = arith.muli %[[RANK]], %[[TILE]]
// CHECK-NEXT: %[[M:.*]] = arith.addi %[[FIRST_M]], %[[BELOW]]
// CHECK: nvvm.cp.async.bulk.tensor.shared.cluster.global %{{.*}}, %[[A]], %{{.*}}, box[%{{.*}}, %[[M]]] {isCTAOnly = true}
// CHECK: %[[FIRST:.*]] = arith.muli %[[RANK]], %[[HALF]]
// CHECK-NEXT: %[[FIRST_BYTE:.*]] = arith.muli %[[RANK]], %[[HALF_BYTES]]
// CHECK-NEXT: %[[PLACE:.*]] = arith.addi %{{.*}}, %[[FIRST_BYTE]]
// CHECK-NEXT: %[[N:.*]] = arith.addi %{{.*}}, %[[FIRST]]
// CHECK: %[[OURS:.*]] = llvm.getelementptr %{{.*}}[%[[PLACE]]]
// CHECK-NEXT: %[[THEIRS:.*]] = llvm.addrspacecast %[[OURS]] : !llvm.ptr<3> to !llvm.ptr<7>
// CHECK: nvvm.cp.async.bulk.tensor.shared.cluster.global %[[THEIRS]], %[[B]], %{{.*}}, box[%{{.*}}, %[[N]]] multicast_mask = %[[BOTH]] : !llvm.ptr<7>

// Nor does one end while the other may still write to it.
// CHECK: nvvm.cluster.arrive
// CHECK-NEXT: nvvm.cluster.wait
// CHECK-NEXT: llvm.return

// The arrival has no fence of the scope of the cluster.
// PTX: .explicitcluster
// PTX: .reqnctapercluster 2, 1, 1
// PTX: mbarrier.arrive.shared::cluster.b64
// PTX: cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster
