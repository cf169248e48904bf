// RUN: fp8-opt %s --split-input-file --fp8-convert-forall-to-runtime | FileCheck %s

// Tiles are numbered through, in row-major order; what the body uses goes along
// in a struct, but constants.
// CHECK: llvm.func @fp8rt_parallel_for(i64, !llvm.ptr, !llvm.ptr)
// CHECK-LABEL: func.func @two_dimensions
// CHECK-SAME: %[[A:[a-z0-9]+]]: memref<?x?xf32>, %[[X:.*]]: f32, %[[M:.*]]: index
// CHECK: %[[CONTEXT:.*]] = llvm.alloca
// CHECK: arith.index_cast %{{.*}} : index to i64
// CHECK: %[[BODY:.*]] = constant @two_dimensions_forall : (i64, i64, !llvm.ptr) -> ()
// CHECK: %[[ADDRESS:.*]] = builtin.unrealized_conversion_cast %[[BODY]]
// CHECK: llvm.store %{{.*}}, %[[CONTEXT]]
// CHECK: llvm.call @fp8rt_parallel_for(%{{.*}}, %[[ADDRESS]], %[[CONTEXT]])
// CHECK-NOT: scf.forall
// CHECK: func.func private @two_dimensions_forall(%[[BEGIN:.*]]: i64, %[[END:.*]]: i64, %[[C:.*]]: !llvm.ptr)
// CHECK-SAME: llvm.linkage = #llvm.linkage<internal>
// CHECK: llvm.load %[[C]]
// CHECK: scf.for %[[N:.*]] = %{{.*}} to %{{.*}} step
// CHECK: %[[P:.*]]:2 = affine.delinearize_index %[[N]] into (%{{.*}}, {{.*}}) : index, index
// CHECK: memref.store %{{.*}}, %{{.*}}[%[[P]]#0, %[[P]]#1]
func.func @two_dimensions(%a: memref<?x?xf32>, %x: f32, %m: index) {
  scf.forall (%i, %j) in (%m, 4) {
    memref.store %x, %a[%i, %j] : memref<?x?xf32>
  }
  return
}

// -----

// A loop in a loop stays with its thread.
// CHECK-LABEL: func.func @nested
// CHECK: llvm.call @fp8rt_parallel_for
// CHECK-NOT: llvm.call @fp8rt_parallel_for
// CHECK: func.func private @nested_forall
// CHECK: scf.forall
func.func @nested(%a: memref<8x4xf32>, %x: f32) {
  scf.forall (%i) in (8) {
    scf.forall (%j) in (4) {
      memref.store %x, %a[%i, %j] : memref<8x4xf32>
    }
  }
  return
}

// -----

// Functions have names of their own, whatever the program has taken.
// CHECK-LABEL: func.func @twice
// CHECK: constant @[[FIRST:twice_forall_[0-9]+]]
// CHECK: constant @[[SECOND:twice_forall_[0-9]+]]
// CHECK-DAG: func.func private @[[FIRST]]
// CHECK-DAG: func.func private @[[SECOND]]
func.func @twice(%a: memref<8xf32>, %x: f32) {
  scf.forall (%i) in (8) {
    memref.store %x, %a[%i] : memref<8xf32>
  }
  scf.forall (%i) in (8) {
    memref.store %x, %a[%i] : memref<8xf32>
  }
  return
}
func.func private @twice_forall()
