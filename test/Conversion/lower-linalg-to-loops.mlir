// RUN: fp8-opt %s --fp8-lower-linalg-to-loops | FileCheck %s

#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>

// The sum stays in a register along the innermost loop.
// CHECK-LABEL: func.func @reduction
// CHECK: scf.for %[[I:.*]] = %{{.*}} to %c4
// CHECK-NEXT: %[[INIT:.*]] = memref.load %arg1[%[[I]]]
// CHECK: %[[SUM:.*]] = scf.for %[[J:.*]] = {{.*}} iter_args(%[[S:.*]] = %[[INIT]]) -> (f32) {
// CHECK-NEXT: %[[X:.*]] = memref.load %arg0[%[[I]], %[[J]]]
// CHECK-NEXT: %[[NEXT:.*]] = arith.addf %[[X]], %[[S]]
// CHECK-NEXT: scf.yield %[[NEXT]]
// CHECK: memref.store %[[SUM]], %arg1[%[[I]]]
func.func @reduction(%a: memref<4x8xf32>, %c: memref<4xf32>) {
  linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
      ins(%a : memref<4x8xf32>) outs(%c : memref<4xf32>) {
  ^bb0(%x: f32, %s: f32):
    %0 = arith.addf %x, %s : f32
    linalg.yield %0 : f32
  }
  return
}

// Two sums at once.
// CHECK-LABEL: func.func @two_results
// CHECK: scf.for {{.*}} iter_args(%{{.*}}, %{{.*}}) -> (f32, f32)
// CHECK-COUNT-2: memref.store
func.func @two_results(%a: memref<4x8xf32>, %c: memref<4xf32>, %d: memref<4xf32>) {
  linalg.generic {indexing_maps = [#id, #row, #row], iterator_types = ["parallel", "reduction"]}
      ins(%a : memref<4x8xf32>) outs(%c, %d : memref<4xf32>, memref<4xf32>) {
  ^bb0(%x: f32, %s: f32, %t: f32):
    %0 = arith.addf %x, %s : f32
    %1 = arith.maximumf %x, %t : f32
    linalg.yield %0, %1 : f32, f32
  }
  return
}

// The inner loop is parallel: the sum goes through memory.
// CHECK-LABEL: func.func @outer_reduction
// CHECK-NOT: iter_args
// CHECK: memref.store
func.func @outer_reduction(%a: memref<4x8xf32>, %c: memref<8xf32>) {
  linalg.generic {indexing_maps = [#id, affine_map<(i, j) -> (j)>], iterator_types = ["reduction", "parallel"]}
      ins(%a : memref<4x8xf32>) outs(%c : memref<8xf32>) {
  ^bb0(%x: f32, %s: f32):
    %0 = arith.addf %x, %s : f32
    linalg.yield %0 : f32
  }
  return
}

// A result that is only written is not read.
// CHECK-LABEL: func.func @elementwise
// CHECK-NOT: memref.load %arg1
// CHECK: memref.store %{{.*}}, %arg1[%[[I:.*]], %[[J:.*]]]
func.func @elementwise(%a: memref<?x8xf32>, %c: memref<?x8xf32>) {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%a : memref<?x8xf32>) outs(%c : memref<?x8xf32>) {
  ^bb0(%x: f32, %o: f32):
    %i = linalg.index 1 : index
    %0 = arith.index_cast %i : index to i32
    %1 = arith.sitofp %0 : i32 to f32
    %2 = arith.addf %x, %1 : f32
    linalg.yield %2 : f32
  }
  return
}

// LLVM's memcpy serves contiguous copies; others become loops.
// CHECK-LABEL: func.func @copies
// CHECK: scf.for
// CHECK: scf.for
// CHECK: memref.store
// CHECK: memref.copy %arg1, %arg2
func.func @copies(%a: memref<4x8xf32, strided<[16, 1]>>, %c: memref<4x8xf32>, %d: memref<4x8xf32>) {
  memref.copy %a, %c : memref<4x8xf32, strided<[16, 1]>> to memref<4x8xf32>
  memref.copy %c, %d : memref<4x8xf32> to memref<4x8xf32>
  return
}
