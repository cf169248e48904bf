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

// Squares as large as a vector of 16 bytes, so that a line of the cache is
// written whole; what is left over goes element by element.
// CHECK-LABEL: func.func @transpose
// CHECK: scf.for %[[FIRST:.*]] = %c0{{.*}} to %c32{{.*}} step %c64
// CHECK: scf.for %[[COLUMN:.*]] = %c0{{.*}} to %c16{{.*}} step %c16
// CHECK: scf.for %[[ROW:.*]] = %[[FIRST]] to %{{.*}} step %c16
// CHECK-COUNT-16: vector.load %arg0[%{{.*}}, %[[COLUMN]]]
// CHECK-COUNT-64: vector.shuffle
// CHECK-COUNT-16: vector.store %{{.*}}, %arg1[%{{.*}}, %[[ROW]]]
// CHECK: scf.for %{{.*}} = %c16{{.*}} to %c20
// CHECK: scf.for %{{.*}} = %c0{{.*}} to %c32
// CHECK: memref.load
// CHECK: scf.for %{{.*}} = %c0{{.*}} to %c20
// CHECK: scf.for %{{.*}} = %c32{{.*}} to %c40
// CHECK: memref.load
func.func @transpose(%a: memref<40x20xf8E4M3FN>, %b: memref<20x40xf8E4M3FN>) {
  linalg.transpose ins(%a : memref<40x20xf8E4M3FN>) outs(%b : memref<20x40xf8E4M3FN>) permutation = [1, 0]
  return
}

// CHECK-LABEL: func.func @transpose_batch
// CHECK: scf.for %[[I:.*]] = %c0{{.*}} to %c3
// CHECK-COUNT-8: vector.load %arg0[%[[I]], %{{.*}}] : memref<3x16x8xbf16>, vector<8xbf16>
// CHECK-COUNT-24: vector.shuffle
// CHECK-COUNT-8: vector.store
func.func @transpose_batch(%a: memref<3x16x8xbf16>, %b: memref<3x8x16xbf16>) {
  linalg.transpose ins(%a : memref<3x16x8xbf16>) outs(%b : memref<3x8x16xbf16>) permutation = [0, 2, 1]
  return
}

// Rows that are apart, other permutations and wide elements have no squares.
// CHECK-LABEL: func.func @transpose_elements
// CHECK-NOT: vector
func.func @transpose_elements(%a: memref<16x16xf32, strided<[32, 2]>>, %b: memref<16x16xf32>,
                              %c: memref<4x4x4xf32>, %d: memref<4x4x4xf32>,
                              %e: memref<16x16xf64>, %f: memref<16x16xf64>) {
  linalg.transpose ins(%a : memref<16x16xf32, strided<[32, 2]>>) outs(%b : memref<16x16xf32>) permutation = [1, 0]
  linalg.transpose ins(%c : memref<4x4x4xf32>) outs(%d : memref<4x4x4xf32>) permutation = [1, 2, 0]
  linalg.transpose ins(%e : memref<16x16xf64>) outs(%f : memref<16x16xf64>) permutation = [1, 0]
  return
}

// Eight rows at a time: additions of one wait for each other. Each has its
// order.
// CHECK-LABEL: func.func @rows_together
// CHECK: scf.for %[[I:.*]] = %{{.*}} to %c16{{.*}} step %c8
// CHECK-COUNT-8: memref.load %arg1
// CHECK: %[[SUMS:.*]]:8 = scf.for %[[J:.*]] = {{.*}} iter_args(
// CHECK-COUNT-8: arith.addf
// CHECK: scf.yield
// CHECK-COUNT-8: memref.store %[[SUMS]]#
// CHECK: scf.for %[[I:.*]] = %c16{{.*}} to %c19
// CHECK: scf.for {{.*}} -> (f32) {
func.func @rows_together(%a: memref<19x8xf32>, %c: memref<19xf32>) {
  linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
      ins(%a : memref<19x8xf32>) outs(%c : memref<19xf32>) {
  ^bb0(%x: f32, %s: f32):
    %0 = arith.addf %x, %s : f32
    linalg.yield %0 : f32
  }
  return
}

// A maximum of integers has no order: LLVM takes a row by vectors.
// CHECK-LABEL: func.func @integers
// CHECK: scf.for %{{.*}} = %{{.*}} to %c16{{.*}} step %c1
func.func @integers(%a: memref<16x8xi32>, %c: memref<16xi32>) {
  linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
      ins(%a : memref<16x8xi32>) outs(%c : memref<16xi32>) {
  ^bb0(%x: i32, %s: i32):
    %0 = arith.maxui %x, %s : i32
    linalg.yield %0 : i32
  }
  return
}
