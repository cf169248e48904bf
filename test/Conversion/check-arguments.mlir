// RUN: fp8-opt %s --fp8-check-arguments --split-input-file | FileCheck %s

// CHECK-LABEL: func.func @memrefs(
// CHECK-SAME: %[[X_ARG:.+]]: memref<4x2xf32> {{.*}}, %{{.+}}: f32, %[[Y_ARG:.+]]: memref<?x8xf32>, %[[CONTEXT:.+]]: !llvm.ptr)
// CHECK-DAG: %[[C8:.+]] = arith.constant 8 : index
// CHECK: %[[X_INDEX:.+]] = memref.extract_aligned_pointer_as_index %[[X_ARG]]
// CHECK: %[[X_ADDRESS:.+]] = arith.index_cast %[[X_INDEX]] : index to i64
// CHECK: %[[X_POINTER:.+]] = llvm.inttoptr %[[X_ADDRESS]]
// CHECK: %[[X_COUNT:.+]] = arith.index_cast %[[C8]]
// CHECK: %[[X_NAME:.+]] = llvm.mlir.addressof @[[X:.+]] :
// CHECK: llvm.call @fp8rt_context_check_memory(%[[CONTEXT]], %[[X_POINTER]], %[[X_COUNT]], %[[X_NAME]])
// CHECK: %[[ROWS:.+]] = memref.dim %[[Y_ARG]]
// CHECK: %[[COUNT:.+]] = arith.muli %[[ROWS]], %[[C8]]
// CHECK: %[[Y_COUNT:.+]] = arith.index_cast %[[COUNT]]
// CHECK: %[[Y_NAME:.+]] = llvm.mlir.addressof @[[Y:.+]] :
// CHECK: llvm.call @fp8rt_context_check_memory(%[[CONTEXT]], %{{.+}}, %[[Y_COUNT]], %[[Y_NAME]])
func.func @memrefs(%x: memref<4x2xf32> {fp8.name = "x"}, %s: f32, %y: memref<?x8xf32>, %context: !llvm.ptr) {
  linalg.fill ins(%s : f32) outs(%x : memref<4x2xf32>)
  linalg.fill ins(%s : f32) outs(%y : memref<?x8xf32>)
  return
}

// What nothing is done with may lie anywhere.
// CHECK-LABEL: func.func @idle(
// CHECK-NEXT: return
func.func @idle(%x: memref<4xf32>, %context: !llvm.ptr) {
  return
}

// Who calls a private function has checked what it passes.
// CHECK-LABEL: func.func private @inner(
// CHECK-NEXT: linalg.fill
func.func private @inner(%x: memref<4xf32>, %s: f32, %context: !llvm.ptr) {
  linalg.fill ins(%s : f32) outs(%x : memref<4xf32>)
  return
}

// A pointer is a state only where there is one.
// CHECK-LABEL: func.func @pointer(
// CHECK-NEXT: return
func.func @pointer(%p: !llvm.ptr, %context: !llvm.ptr) {
  return
}

// CHECK: llvm.mlir.global internal constant @[[X]]("argument 'x' of 'memrefs'\00")
// CHECK: llvm.mlir.global internal constant @[[Y]]("argument 'arg2' of 'memrefs'\00")

// -----

// CHECK-LABEL: func.func @state(
// CHECK-SAME: %[[STATE:.+]]: !llvm.ptr, %[[CONTEXT:.+]]: !llvm.ptr)
// CHECK: %[[NUM_SLOTS_AT:.+]] = llvm.getelementptr %[[STATE]][0, 1] : (!llvm.ptr) -> !llvm.ptr, !llvm.struct<(i64, i64, ptr, {{.*}}ptr)>
// CHECK: %[[NUM_SLOTS:.+]] = llvm.load %[[NUM_SLOTS_AT]] : !llvm.ptr -> i64
// CHECK: %[[AMAX_AT:.+]] = llvm.getelementptr %[[STATE]][0, 2]
// CHECK: %[[AMAX:.+]] = llvm.load %[[AMAX_AT]] : !llvm.ptr -> !llvm.ptr
// CHECK: llvm.call @fp8rt_context_check_memory(%[[CONTEXT]], %[[AMAX]], %[[NUM_SLOTS]], %{{.+}})
module attributes {fp8.state_manifest = "{}"} {
  func.func @state(%state: !llvm.ptr, %context: !llvm.ptr) {
    return
  }
}

// CHECK: llvm.mlir.global internal constant @{{.+}}("the rows of the state\00")
