// RUN: fp8-opt %s --fp8-convert-gpu-to-runtime --split-input-file | FileCheck %s

// CHECK-DAG: llvm.mlir.global internal constant @loops_image_data("PTX")
// CHECK-DAG: llvm.mlir.global internal constant @loops_image() {{.*}} : !llvm.struct<(ptr, i64)>
// CHECK-DAG: llvm.mlir.global internal constant @loops_double_name("double\00")
// CHECK-DAG: llvm.mlir.global internal constant @loops_double() {{.*}} : !llvm.struct<(ptr, ptr)>
// CHECK-NOT: gpu.

// CHECK-LABEL: func.func @program
// CHECK-SAME:    %[[CONTEXT:[a-z0-9]+]]: !llvm.ptr)
// CHECK:       %[[P:.+]] = llvm.call @fp8rt_context_alloc(%[[CONTEXT]],
// CHECK:       llvm.call @fp8rt_context_copy(%[[CONTEXT]],
// CHECK:       %[[KERNEL:.+]] = llvm.mlir.addressof @loops_double
// CHECK:       llvm.call @fp8rt_context_launch(%[[CONTEXT]], %[[KERNEL]],
// CHECK:       llvm.call @fp8rt_context_read(%[[CONTEXT]],
// CHECK:       llvm.call @fp8rt_context_free(%[[CONTEXT]],
module attributes {gpu.container_module} {
  gpu.binary @loops [#gpu.object<#nvvm.target, kernels = <[
    #gpu.kernel_metadata<"double", !llvm.func<void (ptr)>>]>, assembly = "PTX">]
  func.func @program(%x: memref<8xf32>, %context: !llvm.ptr) -> f32 {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %y = memref.alloc() : memref<8xf32>
    memref.copy %x, %y : memref<8xf32> to memref<8xf32>
    gpu.launch_func @loops::@double blocks in (%c1, %c1, %c1)
        threads in (%c1, %c1, %c1) args(%y : memref<8xf32>)
    %0 = memref.load %y[%c0] : memref<8xf32>
    memref.dealloc %y : memref<8xf32>
    return %0 : f32
  }
}

// -----

// Constants are the device's, and a failed check goes on.

// CHECK-LABEL: func.func @constant
// CHECK:       %[[DATA:.+]] = llvm.mlir.addressof @table
// CHECK:       llvm.call @fp8rt_context_get_constant(%{{.*}}, %[[DATA]],
// CHECK:       llvm.call @fp8rt_context_require(
// CHECK-NOT:   cf.
memref.global "private" constant @table : memref<4xf32> = dense<[0.0, 1.0, 2.0, 3.0]>
func.func @constant(%ok: i1, %context: !llvm.ptr) -> memref<4xf32> {
  %0 = memref.get_global @table : memref<4xf32>
  cf.assert %ok, "expected it to be so"
  return %0 : memref<4xf32>
}

// -----

// A matmul kernel gets its tensor maps, strides and a grid that fits, and may
// start before the launch before has ended (the last field, 1).

// CHECK-LABEL: func.func @matmul
// CHECK:       llvm.call @fp8rt_context_get_tensor_map
// CHECK:       llvm.call @fp8rt_context_get_tensor_map
// CHECK:       llvm.call @fp8rt_context_alloc
// CHECK:       %[[SMS:.+]] = llvm.call @fp8rt_context_get_num_sms
// CHECK:       llvm.intr.umin(%{{.*}}, %[[SMS]])
// CHECK:       llvm.mlir.constant(200000 : i32)
// CHECK:       %[[OVERLAP:.+]] = llvm.mlir.constant(1 : i32)
// CHECK:       %[[FLAGS:.+]] = llvm.getelementptr %{{.*}}[0, 4] : {{.*}}, !llvm.struct<(array<3 x i32>, array<3 x i32>, array<3 x i32>, i32, i32)>
// CHECK-NEXT:  llvm.store %[[OVERLAP]], %[[FLAGS]]
// CHECK:       llvm.call @fp8rt_context_launch
// CHECK:       llvm.call @fp8rt_context_free
module attributes {gpu.container_module} {
  gpu.binary @kernels [#gpu.object<#nvvm.target, kernels = <[
    #gpu.kernel_metadata<"k", !llvm.func<void (ptr)>, metadata = {
      params = ["a.map", "b.map", "d.ptr", "d.stride_m", "d.stride_batch",
                "scale_a.ptr", "scale_a.stride_row", "scale_b.stride_k", "operand0.ptr",
                "capture0", "counters.ptr", "m", "n", "k"],
      threads = 384 : i64, shared_bytes = 200000 : i64, tile_m = 128 : i64,
      tile_n = 256 : i64, split_k = 2 : i64, cluster = 1 : i64, cluster_m = 128 : i64,
      cluster_n = 256 : i64, box_m = 128 : i64, box_n = 256 : i64, store_bytes = 0 : i64}>]>, assembly = "PTX">]
  func.func @matmul(%a: memref<32x128xf8E4M3FN>, %inv: memref<1x1xf32>,
                    %b: memref<64x128xf8E4M3FN>, %bias: memref<64xbf16>, %s: f32,
                    %d: memref<32x64xbf16>, %context: !llvm.ptr) {
    fp8.launch_matmul @kernels::@k a(%a, %inv : memref<32x128xf8E4M3FN>, memref<1x1xf32>)
        b(%b, %inv : memref<64x128xf8E4M3FN>, memref<1x1xf32>)
        operands(%bias : memref<64xbf16>) captures(%s : f32)
        outs(%d : memref<32x64xbf16>)
    return
  }
}

// -----

// Clusters of two blocks: as many as fit, each block with a box of half a tile
// of B.

// CHECK-LABEL: func.func @clusters
// CHECK:       llvm.extractvalue %{{.*}}[3, 1]
// CHECK-NEXT:  %[[BATCH:.+]] = llvm.mlir.constant(1 : i64)
// CHECK:       %[[PAIR:.+]] = llvm.mlir.constant(256 : i64)
// CHECK-NEXT:  %[[PAIRS_M:.+]] = llvm.udiv %{{.*}}, %[[PAIR]]
// CHECK:       %[[TILES_N:.+]] = llvm.udiv
// CHECK-NEXT:  %[[PAIRS:.+]] = llvm.mul %[[PAIRS_M]], %[[TILES_N]]
// CHECK-NEXT:  %[[ALL:.+]] = llvm.mul %[[PAIRS]], %[[BATCH]]
// CHECK:       llvm.mlir.constant(48 : i32)
// CHECK:       %[[BLOCKS:.+]] = llvm.mul %[[ALL]],
// CHECK-NEXT:  %[[SMS:.+]] = llvm.call @fp8rt_context_get_num_sms
// CHECK-NEXT:  %[[TWO:.+]] = llvm.mlir.constant(2 : i64)
// CHECK-NEXT:  %[[MOST:.+]] = llvm.udiv %[[SMS]], %[[TWO]]
// CHECK-NEXT:  %[[CLUSTERS:.+]] = llvm.intr.umin(%[[BLOCKS]], %[[MOST]])
// CHECK:       llvm.mul %[[CLUSTERS]], %{{.*}} : i64
// CHECK:       llvm.call @fp8rt_context_launch
module attributes {gpu.container_module} {
  gpu.binary @kernels [#gpu.object<#nvvm.target, kernels = <[
    #gpu.kernel_metadata<"k", !llvm.func<void (ptr)>, metadata = {
      params = ["a.map", "b.map", "d.ptr", "m", "n", "k"],
      threads = 384 : i64, shared_bytes = 200000 : i64, tile_m = 128 : i64,
      tile_n = 96 : i64, split_k = 1 : i64, cluster = 2 : i64, cluster_m = 256 : i64,
      cluster_n = 96 : i64, box_m = 128 : i64, box_n = 48 : i64, store_bytes = 0 : i64}>]>, assembly = "PTX">]
  func.func @clusters(%a: memref<32x144xf8E4M3FN>, %inv: memref<1x1xf32>,
                      %b: memref<64x144xf8E4M3FN>, %d: memref<32x64xbf16>, %context: !llvm.ptr) {
    fp8.launch_matmul @kernels::@k a(%a, %inv : memref<32x144xf8E4M3FN>, memref<1x1xf32>)
        b(%b, %inv : memref<64x144xf8E4M3FN>, memref<1x1xf32>)
        outs(%d : memref<32x64xbf16>)
    return
  }
}
