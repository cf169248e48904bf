// RUN: fp8-opt %s --fp8-convert-gpu-to-runtime --split-input-file | FileCheck %s

// CHECK-DAG: llvm.mlir.global internal constant @loops_image_data("PTX")
// CHECK-DAG: llvm.mlir.global internal constant @loops_image() {{.*}} : !llvm.struct<(ptr, i64)>
// CHECK-DAG: llvm.mlir.global internal constant @loops_double_name("double\00")
// CHECK-DAG: llvm.mlir.global internal constant @loops_double() {{.*}} : !llvm.struct<(ptr, ptr, ptr)>
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

// A kernel whose launch is described: the description is in the program, as the
// runtime reads it, and the call has the tensors and what was captured.

#launch = #fp8_gpu.launch<
  arguments = [#fp8_gpu.argument<name = "x", element = f8E4M3FN, rank = 2, access = read, alignment = 16>,
               #fp8_gpu.argument<name = "y", element = f32, rank = 1, access = update, alignment = 4>],
  extents = [#fp8_gpu.extent<"m", 0, 0>],
  params = [#fp8_gpu.pointer<0>, #fp8_gpu.stride<0, 0>, #fp8_gpu.pointer<1>,
            #fp8_gpu.capture<0 : bf16>, #fp8_gpu.capture<1 : i32>],
  grid = affine_map<()[m] -> (m)>, block = 128>

// CHECK-DAG:   llvm.mlir.global internal constant @kernels_k_name("k\00")
// CHECK-DAG:   llvm.mlir.global internal constant @kernels_k_launch("{\22version\22:2,\22arguments\22:[{\22name\22:\22x\22,{{.*}}}\00")
// CHECK:       llvm.mlir.global internal constant @kernels_k() {{.*}} : !llvm.struct<(ptr, ptr, ptr)>
// CHECK-DAG:     %[[IMAGE:.+]] = llvm.mlir.addressof @kernels_image
// CHECK-DAG:     %[[NAME:.+]] = llvm.mlir.addressof @kernels_k_name
// CHECK-DAG:     %[[LAUNCH:.+]] = llvm.mlir.addressof @kernels_k_launch
// CHECK-DAG:     llvm.insertvalue %[[IMAGE]], %{{.*}}[0]
// CHECK-DAG:     llvm.insertvalue %[[NAME]], %{{.*}}[1]
// CHECK-DAG:     llvm.insertvalue %[[LAUNCH]], %{{.*}}[2]
// CHECK-LABEL: func.func @described
// CHECK-SAME:    %[[S:[a-z0-9]+]]: bf16, %[[I:[a-z0-9]+]]: i32, %[[CONTEXT:[a-z0-9]+]]: !llvm.ptr)
// Memory is in the frame, once, wherever the launch is.
// CHECK-DAG:   %[[TWO:.+]] = llvm.mlir.constant(2 : i64)
// CHECK-DAG:   %[[ARGUMENTS:.+]] = llvm.alloca %{{.*}} x !llvm.struct<(ptr, array<8 x i64>, array<8 x i64>)> {alignment = 8 : i64}
// CHECK-DAG:   %[[S_PLACE:.+]] = llvm.alloca %{{.*}} x bf16
// CHECK-DAG:   %[[I_PLACE:.+]] = llvm.alloca %{{.*}} x i32
// CHECK-DAG:   %[[CAPTURES:.+]] = llvm.alloca %{{.*}} x !llvm.array<2 x ptr>
// CHECK:       cf.br
// CHECK-NOT:   llvm.alloca
// The address is that of the first element; sizes and strides are the memref's.
// CHECK:       %[[X:.+]] = llvm.getelementptr %[[ARGUMENTS]][0] : {{.*}}, !llvm.struct<(ptr, array<8 x i64>, array<8 x i64>)>
// CHECK:       %[[FIRST:.+]] = llvm.getelementptr %{{.*}}[%{{.*}}] : (!llvm.ptr, i64) -> !llvm.ptr, i8
// CHECK:       %[[DATA:.+]] = llvm.getelementptr %[[X]][0, 0]
// CHECK-NEXT:  llvm.store %[[FIRST]], %[[DATA]]
// CHECK:       llvm.getelementptr %[[X]][0, 1, 0]
// CHECK:       llvm.getelementptr %[[X]][0, 2, 0]
// CHECK:       llvm.getelementptr %[[X]][0, 1, 1]
// CHECK:       llvm.getelementptr %[[X]][0, 2, 1]
// CHECK:       %[[Y:.+]] = llvm.getelementptr %[[ARGUMENTS]][1]
// CHECK:       llvm.getelementptr %[[Y]][0, 0]
// CHECK:       llvm.getelementptr %[[Y]][0, 1, 0]
// CHECK:       llvm.getelementptr %[[Y]][0, 2, 0]
// CHECK-NOT:   llvm.getelementptr %[[Y]]
// CHECK:       llvm.store %[[S]], %[[S_PLACE]]
// CHECK:       llvm.store %[[I]], %[[I_PLACE]]
// CHECK:       %[[KERNEL:.+]] = llvm.mlir.addressof @kernels_k
// CHECK:       llvm.store %[[S_PLACE]], %{{.*}}
// CHECK:       llvm.store %[[I_PLACE]], %{{.*}}
// CHECK:       llvm.call @fp8rt_context_launch_kernel(%[[CONTEXT]], %[[KERNEL]], %[[ARGUMENTS]], %[[CAPTURES]])
// CHECK-NOT:   llvm.call
module attributes {gpu.container_module, fp8_gpu.target = #fp8_gpu.target<
    chip = "sm_90a", compute_capability = 90, features = "", multiprocessors = 1,
    shared_bytes = 1, registers = 1, mma_rate = 1, l2_rate = 1, memory_rate = 1>} {
  gpu.binary @kernels [#gpu.object<#nvvm.target, kernels = <[
    #gpu.kernel_metadata<"k", !llvm.func<void (ptr)>, metadata = {fp8_gpu.launch = #launch}>]>, assembly = "PTX">]
  func.func @described(%x: memref<32x128xf8E4M3FN, strided<[256, 1], offset: ?>>, %y: memref<?xf32>,
                       %s: bf16, %i: i32, %context: !llvm.ptr) {
    cf.br ^body
  ^body:
    fp8_gpu.launch @kernels::@k #launch ins(%x : memref<32x128xf8E4M3FN, strided<[256, 1], offset: ?>>)
        captures(%s, %i : bf16, i32) outs(%y : memref<?xf32>)
    return
  }
}

// -----

// The target is no longer anyone's concern.

// CHECK-LABEL: module
// CHECK-NOT:   fp8_gpu.target
// CHECK:       func.func @nothing
module attributes {fp8_gpu.target = #fp8_gpu.target<
    chip = "sm_90a", compute_capability = 90, features = "", multiprocessors = 1,
    shared_bytes = 1, registers = 1, mma_rate = 1, l2_rate = 1, memory_rate = 1>} {
  func.func @nothing(%context: !llvm.ptr) {
    return
  }
}
