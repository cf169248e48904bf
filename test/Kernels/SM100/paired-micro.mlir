// RUN: fp8-opt --fp8-set-target=chip=sm_100a --fp8-build-kernels %s -o %t.mlir
// RUN: fp8-translate --kernels-to-ptx %t.mlir | FileCheck %s

// Two blocks of a cluster multiply 256 rows with factors of 32: each copies those
// of its own rows and of all columns, whose asynchronous copies arrive in itself.

// The first one's barriers count its loader, its 32 lanes and the other one.
// CHECK:       selp.b32 	%[[COUNT:r[0-9]+]], 34, 32,
// CHECK-NEXT:  mbarrier.init.shared.b64 	{{.*}}, %[[COUNT]];

// Behind the warps that store: the second one's copies are there, and it says so at the first one's barrier.
// CHECK:       cp.async.bulk.wait_group 	0;
// CHECK:       mbarrier.try_wait.parity.shared.b64 %{{p[0-9]+}}, [%[[FULL:rd[0-9]+]]]
// CHECK:       fence.proxy.async.shared::cta;
// CHECK-NEXT:  mapa.shared::cluster.u64 	%[[FIRST:rd[0-9]+]], %[[FULL]], 0;
// CHECK:       mbarrier.arrive.shared::cluster.b64 _, [%[[FIRST]]]

// The first one's thread copies factors and multiplies for both.
// CHECK:       fence.proxy.async.shared::cta;
// CHECK-COUNT-2: tcgen05.cp.cta_group::2.32x128b.warpx4
// CHECK-COUNT-4: tcgen05.mma.cta_group::2.kind::mxf8f6f4.block_scale
// CHECK:       tcgen05.commit.cta_group::2.{{.*}}.multicast::cluster.b64

// CHECK:       cp.async.mbarrier.arrive.noinc.shared.b64

!m = !fp8.scaled<512x512xf8E4M3FN, block = [1, 32], scale = f8E8M0FNU>
func.func @matmul(%a: !m, %b: !m) -> tensor<512x512xbf16> {
  %0 = fp8.matmul %a, %b
    {fp8_gpu.config = #fp8_sm100.gemm<tile_m = 256, tile_n = 64, stages = 3, cta_group = 2>}
    : !m, !m -> tensor<512x512xbf16>
  return %0 : tensor<512x512xbf16>
}
