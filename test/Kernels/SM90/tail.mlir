// RUN: fp8-opt --fp8-set-target=chip=sm_90a --fp8-build-kernels --canonicalize --split-input-file %s | FileCheck %s

// Rows out of bounds are filled with zeros once for each stage of the ring: the
// first blocks of a tile's K are whole boxes.

!x = !fp8.scaled<?x4096xf8E4M3FN, block = [*, *], scale = f32>
!w = !fp8.scaled<?x4096xf8E4M3FN, block = [*, *], scale = f32>
func.func @matmul(%a: !x, %b: !w) -> tensor<?x?xbf16> {
  %0 = fp8.matmul %a, %b accumulate = fast
    {fp8_gpu.config = #fp8_sm90.gemm<tile_m = 64, tile_n = 32, stages = 5, consumers = 1, store = direct>}
    : !x, !w -> tensor<?x?xbf16>
  return %0 : tensor<?x?xbf16>
}

// CHECK: #fp8_gpu.tensor_map<0, box = [128, 64], swizzle = 128, l2 = 128, tail = 1>, #fp8_gpu.tensor_map<2, box = [128, 32], swizzle = 128, l2 = 128, tail = 1>]
// CHECK-LABEL: llvm.func @fp8_matmul
// CHECK-SAME: %[[A:[a-z0-9]+]]: !llvm.ptr {{{[^}]*}}}, %[[B:[a-z0-9]+]]: !llvm.ptr {{{[^}]*}}},
// CHECK-SAME: %[[M:[a-z0-9]+]]: i32, %[[N:[a-z0-9]+]]: i32, %{{[a-z0-9]+}}: i32, %[[TAIL_A:[a-z0-9]+]]: !llvm.ptr {{{[^}]*}}}, %[[TAIL_B:[a-z0-9]+]]: !llvm.ptr {{{[^}]*}}})
// CHECK-DAG: %[[WHOLE:.*]] = arith.constant 12288 : i32
// CHECK-DAG: %[[STAGES:.*]] = arith.constant 5 : i32
// CHECK-DAG: %[[ROWS:.*]] = arith.constant 64 : i32
// CHECK-DAG: %[[COLS:.*]] = arith.constant 32 : i32
// CHECK-DAG: %[[LINE:.*]] = arith.constant 128 : i32
// CHECK: nvvm.setmaxregister decrease

// What is in bounds of a tile.
// CHECK: %[[IN_A:.*]] = arith.minui %{{.*}}, %[[ROWS]]
// CHECK-NEXT: %[[BYTES_A:.*]] = arith.muli %[[IN_A]], %[[LINE]]
// CHECK: %[[IN_B:.*]] = arith.minui %{{.*}}, %[[COLS]]
// CHECK-NEXT: %[[BYTES_B:.*]] = arith.muli %[[IN_B]], %[[LINE]]
// CHECK: %[[BYTES:.*]] = arith.addi %[[BYTES_A]], %[[BYTES_B]]

// The first five blocks of K.
// CHECK: %[[SECOND:.*]] = arith.minui %{{.*}}, %[[STAGES]]
// CHECK: scf.for unsigned %{{.*}} = %{{.*}} to %[[SECOND]] step
// CHECK: nvvm.mbarrier.arrive.expect_tx %{{.*}}, %[[WHOLE]]
// CHECK-NOT: scf.if
// CHECK: nvvm.cp.async.bulk.tensor.shared.cluster.global %{{.*}}, %[[A]],
// CHECK-NOT: scf.if
// CHECK: nvvm.cp.async.bulk.tensor.shared.cluster.global %{{.*}}, %[[B]],

// The others.
// CHECK: scf.for unsigned %{{.*}} = %[[SECOND]] to
// CHECK: nvvm.mbarrier.arrive.expect_tx %{{.*}}, %[[BYTES]]
// CHECK: %[[IS_PART:.*]] = arith.cmpi ult, %{{.*}}, %[[ROWS]]
// CHECK-NEXT: scf.if %[[IS_PART]]
// CHECK-NEXT: %[[IS_ANY:.*]] = arith.cmpi ult, %{{.*}}, %[[M]]
// CHECK-NEXT: scf.if %[[IS_ANY]]
// CHECK: nvvm.cp.async.bulk.tensor.shared.cluster.global %{{.*}}, %[[TAIL_A]],
// CHECK: else
// CHECK: nvvm.cp.async.bulk.tensor.shared.cluster.global %{{.*}}, %[[A]],
// CHECK: arith.cmpi ult, %{{.*}}, %[[COLS]]
// CHECK: arith.cmpi ult, %{{.*}}, %[[N]]
// CHECK: nvvm.cp.async.bulk.tensor.shared.cluster.global %{{.*}}, %[[TAIL_B]],
// CHECK: else
// CHECK: nvvm.cp.async.bulk.tensor.shared.cluster.global %{{.*}}, %[[B]],

// -----

// With rows innermost a box has 64 of them, whole or not at all: fewer would
// lie in shared memory in another way.

func.func @rows_innermost(%a: tensor<4096x?xbf16>, %b: tensor<?x4096xbf16>) -> tensor<?x?xbf16> {
  %0 = fp8.matmul %a, %b transpose_a accumulate = fast
    {fp8_gpu.config = #fp8_sm90.gemm<tile_m = 128, tile_n = 32, stages = 5, consumers = 2, store = direct>}
    : tensor<4096x?xbf16>, tensor<?x4096xbf16> -> tensor<?x?xbf16>
  return %0 : tensor<?x?xbf16>
}

// CHECK: : i32>, #fp8_gpu.tensor_map<1, box = [64, 32], swizzle = 128, l2 = 128, tail = 1>]
// CHECK-LABEL: llvm.func @fp8_matmul
// CHECK-SAME: %[[A:[a-z0-9]+]]: !llvm.ptr
// CHECK: nvvm.setmaxregister decrease
// CHECK-COUNT-2: nvvm.mbarrier.arrive.expect_tx
// CHECK: scf.if
// CHECK-NEXT: nvvm.cp.async.bulk.tensor.shared.cluster.global %{{.*}}, %[[A]],
// CHECK-NOT: else
// CHECK: scf.if
// CHECK-NEXT: nvvm.cp.async.bulk.tensor.shared.cluster.global %{{.*}}, %[[A]],

// -----

// Rows of a group begin anywhere, so that only B's are left out.

!t = !fp8.scaled<1024x4096xf8E4M3FN, block = [*, *], scale = f32>
!e = !fp8.scaled<8x512x4096xf8E4M3FN, block = [*, *, *], scale = f32>
func.func @groups(%a: !t, %b: !e, %offsets: tensor<9xi32>) -> tensor<1024x512xbf16> {
  %0 = fp8.grouped_matmul %a, %b offsets(%offsets : tensor<9xi32>) accumulate = fast
    {fp8_gpu.config = #fp8_sm90.gemm<tile_m = 64, tile_n = 32, stages = 5, consumers = 1>}
    : !t, !e -> tensor<1024x512xbf16>
  return %0 : tensor<1024x512xbf16>
}

// CHECK-NOT: tensor_map<0, {{[^>]*}}tail
// CHECK: #fp8_gpu.tensor_map<2, box = [128, 32, 1], swizzle = 128, l2 = 128, tail = 1>]
