// RUN: fp8-opt --fp8-set-target=chip=sm_100a --fp8-build-kernels %s -o %t.mlir
// RUN: FileCheck %s --check-prefix=LAUNCH --input-file=%t.mlir
// RUN: fp8-translate --kernels-to-ptx %t.mlir | FileCheck %s

// Two blocks of a cluster multiply 256 rows: each has 128 of A and 32 of B.

// LAUNCH: cluster = 2

// CHECK:       .reqnctapercluster 2, 1, 1

// Four warps of each block give sums back, at the first one's barrier.
// CHECK:       mov.b32 	%[[WARPS:r[0-9]+]], 8;
// CHECK-NEXT:  mbarrier.init.shared.b64
// CHECK:       tcgen05.alloc.cta_group::2
// CHECK:       barrier.cluster.arrive;
// CHECK-NEXT:  barrier.cluster.wait;

// The first one waits for the bytes of both, at its barrier.
// CHECK:       mapa.shared::cluster
// CHECK-COUNT-2: cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.cta_group::2
// CHECK:       mov.b32 	%{{.*}}, 40960;
// CHECK-NEXT:  mbarrier.arrive.expect_tx
// CHECK:       mapa.shared::cluster
// CHECK:       mbarrier.arrive.shared::cluster

// M >> 4 is 16; commits arrive at both.
// CHECK:       mov.b32 	%{{.*}}, 269484048;
// CHECK-NEXT:  tcgen05.mma.cta_group::2.kind::f8f6f4
// CHECK:       tcgen05.commit.cta_group::2.{{.*}}.multicast::cluster.b64
// CHECK:       barrier.cluster.wait;
// CHECK:       tcgen05.dealloc.cta_group::2
!x = !fp8.scaled<512x512xf8E4M3FN, block = [*, *], scale = f32>
func.func @matmul(%a: !x, %b: !x) -> tensor<512x512xbf16> {
  %0 = fp8.matmul %a, %b
    {fp8_gpu.config = #fp8_sm100.gemm<tile_m = 256, tile_n = 64, stages = 3, cta_group = 2>}
    : !x, !x -> tensor<512x512xbf16>
  return %0 : tensor<512x512xbf16>
}
