// RUN: fp8-opt %s --fp8-pipeline="target=cpu from=fusion to=buffers" | FileCheck %s --check-prefix=BUFFERS
// RUN: fp8-opt %s --fp8-pipeline="target=cpu from=fusion to=kernels" | FileCheck %s --check-prefix=CPU
// RUN: fp8-opt %s --fp8-pipeline="target=sm_90a from=fusion to=host" | FileCheck %s --check-prefix=GPU

// In place where nobody else reads what was there, else in a copy.
// BUFFERS-LABEL: func.func @in_place
// BUFFERS-NOT: memref.copy
// BUFFERS: fp8.all_reduce_amax %[[ROW:.*]] group = "tp" : memref<1x1xf32>
// BUFFERS-NEXT: return %[[ROW]]

// CPU-DAG: llvm.mlir.global internal constant @[[TP:fp8_group.*]]("tp\00")
// CPU-DAG: llvm.mlir.global internal constant @[[DP:fp8_group.*]]("dp\00")
// CPU-LABEL: func.func @in_place
// CPU-DAG: %[[NAME:.*]] = llvm.mlir.addressof @[[TP]]
// CPU: llvm.call @fp8rt_program_all_reduce(%[[NAME]], %{{.*}}, %{{.*}}, %{{.*}})

// GPU-LABEL: llvm.func @in_place
// GPU: llvm.call @fp8rt_context_all_reduce
func.func @in_place(%x: tensor<4x64xbf16>) -> tensor<1x1xf32> {
  %amax = fp8.amax %x block = [*, *] : tensor<4x64xbf16>
  %all = fp8.all_reduce_amax %amax group = "tp" : tensor<1x1xf32>
  return %all : tensor<1x1xf32>
}

// BUFFERS-LABEL: func.func @copied
// BUFFERS-SAME: (%[[ARGUMENT:.*]]: memref<?xf32>
// BUFFERS: %[[COPY:.*]] = memref.alloc
// BUFFERS: memref.copy %[[ARGUMENT]], %[[COPY]]
// BUFFERS-NEXT: fp8.all_reduce_amax %[[COPY]] group = "tp" : memref<?xf32>
func.func @copied(%amaxes: tensor<?xf32>) -> (tensor<?xf32>, tensor<?xf32>) {
  %all = fp8.all_reduce_amax %amaxes group = "tp" : tensor<?xf32>
  return %amaxes, %all : tensor<?xf32>, tensor<?xf32>
}

// A part of a matrix does not lie together.
// BUFFERS-LABEL: func.func @part
// BUFFERS: fp8.all_reduce_amax %{{.*}} group = "dp" : memref<4x2xf32>
func.func @part(%x: tensor<4x8xf32>, %first: index) -> tensor<4x8xf32> {
  %part = tensor.extract_slice %x[0, %first] [4, 2] [1, 1] : tensor<4x8xf32> to tensor<4x2xf32>
  %all = fp8.all_reduce_amax %part group = "dp" : tensor<4x2xf32>
  %whole = tensor.insert_slice %all into %x[0, %first] [4, 2] [1, 1] : tensor<4x2xf32> into tensor<4x8xf32>
  return %whole : tensor<4x8xf32>
}

// All slots of a state, as many as it says.
// BUFFERS-LABEL: func.func @state
// BUFFERS: fp8.all_reduce_amax %{{.*}} group = "dp" first_call : memref<?xf32>
// GPU-LABEL: llvm.func @state
// GPU: llvm.call @fp8rt_context_all_reduce
func.func @state(%state: !fp8.state) {
  fp8.all_reduce_state %state group = "dp" first_call
  return
}
