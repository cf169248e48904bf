// RUN: fp8-opt %s --fp8-merge-fills | FileCheck %s

func.func private @use(memref<1x1xf32>)

// Each begins where an allocation of its own might.

// CHECK-LABEL: func.func @two(
// CHECK:       %[[ALL:.+]] = memref.alloc() {alignment = 64 : i64} : memref<128xi8>
// CHECK:       %[[WHOLE:.+]] = memref.view %[[ALL]][%{{.+}}][] : memref<128xi8> to memref<32xf32>
// CHECK:       linalg.fill ins(%{{.+}} : f32) outs(%[[WHOLE]] : memref<32xf32>)
// CHECK-NOT:   linalg.fill
// CHECK-NOT:   memref.alloc(
// CHECK-NOT:   memref.dealloc
// CHECK-DAG:   %[[C0:.+]] = arith.constant 0 : index
// CHECK-DAG:   %[[A:.+]] = memref.view %[[ALL]][%{{.+}}][] : memref<128xi8> to memref<1x1xf32>
// CHECK-DAG:   %[[C64:.+]] = arith.constant 64 : index
// CHECK-DAG:   %[[B:.+]] = memref.view %[[ALL]][%[[C64]]][] : memref<128xi8> to memref<1x1xf32>
// CHECK:       call @use(%[[A]])
// CHECK-NEXT:  call @use(%[[B]])
// CHECK-NEXT:  memref.dealloc %[[ALL]]
// CHECK-NEXT:  return
func.func @two() {
  %zero = arith.constant 0.0 : f32
  %0 = memref.alloc() : memref<1x1xf32>
  linalg.fill ins(%zero : f32) outs(%0 : memref<1x1xf32>)
  func.call @use(%0) : (memref<1x1xf32>) -> ()
  memref.dealloc %0 : memref<1x1xf32>
  %1 = memref.alloc() : memref<1x1xf32>
  linalg.fill ins(%zero : f32) outs(%1 : memref<1x1xf32>)
  func.call @use(%1) : (memref<1x1xf32>) -> ()
  memref.dealloc %1 : memref<1x1xf32>
  return
}

// A minus zero has other bits.

// CHECK-LABEL: func.func @other_values(
// CHECK-COUNT-2: linalg.fill ins(%{{.+}} : f32) outs(%{{.+}} : memref<1x1xf32>)
// CHECK-NOT:   memref.view
func.func @other_values() {
  %zero = arith.constant 0.0 : f32
  %minus = arith.constant -0.0 : f32
  %0 = memref.alloc() : memref<1x1xf32>
  linalg.fill ins(%zero : f32) outs(%0 : memref<1x1xf32>)
  %1 = memref.alloc() : memref<1x1xf32>
  linalg.fill ins(%minus : f32) outs(%1 : memref<1x1xf32>)
  memref.dealloc %0 : memref<1x1xf32>
  memref.dealloc %1 : memref<1x1xf32>
  return
}

// What is returned, written before it is filled, filled with what only the run
// knows, large, or of a size that only the run knows stays as it is.

// CHECK-LABEL: func.func @others(
// CHECK-NOT:   memref.view
// CHECK:       return
func.func @others(%value: f32, %size: index) -> memref<1x1xf32> {
  %zero = arith.constant 0.0 : f32
  %0 = memref.alloc() : memref<1x1xf32>
  linalg.fill ins(%zero : f32) outs(%0 : memref<1x1xf32>)
  %1 = memref.alloc() : memref<1x1xf32>
  func.call @use(%1) : (memref<1x1xf32>) -> ()
  linalg.fill ins(%zero : f32) outs(%1 : memref<1x1xf32>)
  memref.dealloc %1 : memref<1x1xf32>
  %2 = memref.alloc() : memref<1x1xf32>
  linalg.fill ins(%value : f32) outs(%2 : memref<1x1xf32>)
  memref.dealloc %2 : memref<1x1xf32>
  %3 = memref.alloc() : memref<2048xf32>
  linalg.fill ins(%zero : f32) outs(%3 : memref<2048xf32>)
  memref.dealloc %3 : memref<2048xf32>
  %4 = memref.alloc(%size) : memref<?xf32>
  linalg.fill ins(%zero : f32) outs(%4 : memref<?xf32>)
  memref.dealloc %4 : memref<?xf32>
  %5 = memref.alloc() : memref<1x1xf32>
  linalg.fill ins(%zero : f32) outs(%5 : memref<1x1xf32>)
  memref.dealloc %5 : memref<1x1xf32>
  return %0 : memref<1x1xf32>
}

// Those of a loop are filled each time, and freed there.

// CHECK-LABEL: func.func @loop(
// CHECK:       scf.for
// CHECK-NEXT:    memref.alloc() {alignment = 64 : i64} : memref<192xi8>
// CHECK:         linalg.fill
// CHECK-NOT:     linalg.fill
// CHECK:         memref.dealloc
// CHECK-NOT:     memref.dealloc
func.func @loop(%n: index) {
  %zero = arith.constant 0 : i32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    %0 = memref.alloc() : memref<17xi32>
    linalg.fill ins(%zero : i32) outs(%0 : memref<17xi32>)
    %1 = memref.alloc() : memref<2x3xi32>
    linalg.fill ins(%zero : i32) outs(%1 : memref<2x3xi32>)
    %2 = memref.load %0[%c0] : memref<17xi32>
    memref.store %2, %1[%c0, %c0] : memref<2x3xi32>
    memref.dealloc %1 : memref<2x3xi32>
    memref.dealloc %0 : memref<17xi32>
  }
  return
}
