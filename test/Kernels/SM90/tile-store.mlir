// RUN: fp8-opt --fp8-set-target=chip=sm_90a --fp8-build-kernels --canonicalize --split-input-file %s | FileCheck %s

// 16-bit results: four 8x8 matrices at once; the copy is issued by one thread,
// after what was written is visible to it.

!x = !fp8.scaled<?x4096xf8E4M3FN, block = [*, *], scale = f32>
!w = !fp8.scaled<4096x4096xf8E4M3FN, block = [*, *], scale = f32>
func.func @bulk(%a: !x, %b: !w) -> tensor<?x4096xbf16> {
  %0 = fp8.matmul %a, %b accumulate = fast
    {fp8_gpu.config = #fp8_sm90.gemm<tile_m = 64, tile_n = 128, stages = 2, consumers = 1>}
    : !x, !w -> tensor<?x4096xbf16>
  return %0 : tensor<?x4096xbf16>
}

// CHECK-LABEL: llvm.func @fp8_matmul
// CHECK-SAME: %{{[a-z0-9]+}}: !llvm.ptr {{{[^}]*}}}, %{{[a-z0-9]+}}: !llvm.ptr {{{[^}]*}}}, %[[D:[a-z0-9]+]]: !llvm.ptr
// Two slabs of 64 columns, in two buffers: all of the tile.
// CHECK: nvvm.cp.async.bulk.wait_group 0 {read}
// CHECK: nvvm.barrier id = %[[ID:.*]] number_of_threads
// CHECK-COUNT-8: nvvm.stmatrix
// CHECK: nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>, space = #nvvm.shared_space<cta>}
// CHECK: nvvm.barrier id = %[[ID]] number_of_threads
// CHECK: nvvm.elect.sync
// CHECK: nvvm.cp.async.bulk.tensor.global.shared.cta %[[D]], %{{.*}}, box[%{{.*}}, %{{.*}}]
// CHECK: nvvm.cp.async.bulk.commit.group
// CHECK: nvvm.cp.async.bulk.tensor.global.shared.cta %[[D]]
// CHECK: nvvm.cp.async.bulk.commit.group
// CHECK-NOT: nvvm.stmatrix
// Before the block ends, all has been written.
// CHECK: nvvm.cp.async.bulk.wait_group 0{{$}}

// -----

// Three slabs in two buffers, which alternate; the third one meets the first one
// of the next tile.

!x = !fp8.scaled<?x4096xf8E4M3FN, block = [*, *], scale = f32>
!w = !fp8.scaled<4096x4096xf8E4M3FN, block = [*, *], scale = f32>
func.func @alternating(%a: !x, %b: !w) -> tensor<?x4096xbf16> {
  %0 = fp8.matmul %a, %b accumulate = fast
    {fp8_gpu.config = #fp8_sm90.gemm<tile_m = 64, tile_n = 192, stages = 2, consumers = 1>}
    : !x, !w -> tensor<?x4096xbf16>
  return %0 : tensor<?x4096xbf16>
}

// CHECK-LABEL: llvm.func @fp8_matmul
// CHECK: nvvm.cp.async.bulk.wait_group 0 {read}
// CHECK-COUNT-4: nvvm.stmatrix
// CHECK: nvvm.cp.async.bulk.tensor.global.shared.cta
// CHECK: nvvm.cp.async.bulk.wait_group 1 {read}
// CHECK-COUNT-4: nvvm.stmatrix
// CHECK: nvvm.cp.async.bulk.tensor.global.shared.cta
// CHECK: nvvm.cp.async.bulk.wait_group 1 {read}
// CHECK-COUNT-4: nvvm.stmatrix
// CHECK: nvvm.cp.async.bulk.tensor.global.shared.cta
// CHECK-NOT: nvvm.stmatrix

// -----

// Two subtiles of two slabs in four buffers: each subtile waits for those that it had
// in the last tile, and has barriers once.

!x = !fp8.scaled<?x4096xf8E4M3FN, block = [*, *], scale = f32>
!w = !fp8.scaled<4096x4096xf8E4M3FN, block = [*, *], scale = f32>
func.func @whole_tile(%a: !x, %b: !w) -> tensor<?x4096xbf16> {
  %0 = fp8.matmul %a, %b accumulate = fast
    {fp8_gpu.config = #fp8_sm90.gemm<tile_m = 128, tile_n = 128, stages = 2, consumers = 1, staging = 4>}
    : !x, !w -> tensor<?x4096xbf16>
  return %0 : tensor<?x4096xbf16>
}

// CHECK-LABEL: llvm.func @fp8_matmul
// CHECK: nvvm.cp.async.bulk.wait_group 2 {read}
// CHECK-COUNT-8: nvvm.stmatrix
// CHECK-COUNT-2: nvvm.cp.async.bulk.tensor.global.shared.cta
// CHECK: nvvm.cp.async.bulk.wait_group 2 {read}
// CHECK-COUNT-8: nvvm.stmatrix
// CHECK-COUNT-2: nvvm.cp.async.bulk.tensor.global.shared.cta
// CHECK-NOT: nvvm.stmatrix

// -----

// 112 columns: the second slab of 64 ends with the tile, and begins at 48.

!x = !fp8.scaled<?x4096xf8E4M3FN, block = [*, *], scale = f32>
!w = !fp8.scaled<4096x4096xf8E4M3FN, block = [*, *], scale = f32>
func.func @overlapping_slabs(%a: !x, %b: !w) -> tensor<?x4096xbf16> {
  %0 = fp8.matmul %a, %b accumulate = fast
    {fp8_gpu.config = #fp8_sm90.gemm<tile_m = 64, tile_n = 112, stages = 2, consumers = 1>}
    : !x, !w -> tensor<?x4096xbf16>
  return %0 : tensor<?x4096xbf16>
}

// CHECK: #fp8_gpu.tensor_map<4, box = [64, 64], swizzle = 128, l2 = 128>
// CHECK-LABEL: llvm.func @fp8_matmul
// CHECK: %[[LAST:.*]] = arith.constant 48 : i32
// CHECK-COUNT-8: nvvm.stmatrix
// CHECK: nvvm.cp.async.bulk.tensor.global.shared.cta
// CHECK: %[[COL:.*]] = arith.addi %{{.*}}, %[[LAST]]
// CHECK: nvvm.cp.async.bulk.tensor.global.shared.cta %{{.*}}, %{{.*}}, box[%[[COL]], %{{.*}}]
// CHECK-NOT: nvvm.stmatrix

// -----

// Rows of 1001 elements: no bulk copy can store them.

!x = !fp8.scaled<?x4096xf8E4M3FN, block = [*, *], scale = f32>
!w = !fp8.scaled<1001x4096xf8E4M3FN, block = [*, *], scale = f32>
func.func @direct(%a: !x, %b: !w) -> tensor<?x1001xbf16> {
  %0 = fp8.matmul %a, %b accumulate = fast
    {fp8_gpu.config = #fp8_sm90.gemm<tile_m = 64, tile_n = 8, stages = 2, consumers = 1, store = direct>}
    : !x, !w -> tensor<?x1001xbf16>
  return %0 : tensor<?x1001xbf16>
}

// CHECK-LABEL: llvm.func @fp8_matmul
// CHECK-NOT: nvvm.cp.async.bulk.tensor.global.shared.cta
// CHECK: nvvm.convert.f32x2.to.bf16x2
// CHECK: %[[INSIDE_M:.*]] = arith.cmpi ult, %{{.*}}, %[[M:.*]] : i32
// CHECK-NEXT: %[[INSIDE_N:.*]] = arith.cmpi ult, %{{.*}}, %[[N:.*]] : i32
// CHECK-NEXT: %[[INSIDE:.*]] = arith.andi %[[INSIDE_M]], %[[INSIDE_N]]
// CHECK: nvvm.inline_ptx "st.global.b16 [$0], $1;" ro(%{{.*}}, %{{.*}} : !llvm.ptr<1>, i16), predicate = %[[INSIDE]]
// CHECK-COUNT-3: st.global.b16
// CHECK-NOT: st.global

// -----

// Batches: the third coordinate.

!x = !fp8.scaled<4x?x4096xf8E4M3FN, block = [1, 1, *], scale = f32>
!w = !fp8.scaled<4x4096x4096xf8E4M3FN, block = [1, 1, *], scale = f32>
func.func @batch(%a: !x, %b: !w) -> tensor<4x?x4096xbf16> {
  %0 = fp8.matmul %a, %b accumulate = fast
    {fp8_gpu.config = #fp8_sm90.gemm<tile_m = 64, tile_n = 16, stages = 2, consumers = 1>}
    : !x, !w -> tensor<4x?x4096xbf16>
  return %0 : tensor<4x?x4096xbf16>
}

// CHECK-LABEL: llvm.func @fp8_matmul
// CHECK: nvvm.cp.async.bulk.tensor.global.shared.cta %{{.*}}, %{{.*}}, box[%{{.*}}, %{{.*}}, %[[BATCH:.*]]]
// CHECK: nvvm.cp.async.bulk.tensor.shared.cluster.global {{.*}} box[%{{.*}}, %{{.*}}, %[[BATCH2:.*]]]
// CHECK: nvvm.cp.async.bulk.tensor.shared.cluster.global {{.*}} box[%{{.*}}, %{{.*}}, %[[BATCH2]]]
