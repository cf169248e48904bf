// RUN: fp8-opt %s --fp8-lower-linalg-to-gpu --canonicalize --cse --split-input-file | FileCheck %s

// What lies in another order goes through a tile in shared memory: threads beside
// each other read columns of x, and write rows of y. Rows of a tile start in
// different banks.

// CHECK-LABEL: func.func @transpose
// CHECK:       gpu.launch
// CHECK-SAME:    workgroup(%[[TILE:.+]] : memref<64x33xi32, #gpu.address_space<workgroup>>)
// CHECK-DAG:     %[[COLUMN:.+]] = arith.remui %[[THREAD:.+]], %c32
// CHECK-DAG:     %[[ROW:.+]] = arith.divui %[[THREAD]], %c32
// CHECK-COUNT-8: llvm.load
// CHECK:         memref.store %{{.*}}, %[[TILE]][%[[ROW]], %[[COLUMN]]]
// CHECK:         gpu.barrier
// CHECK:         scf.if
// CHECK:           arith.remui %[[THREAD]], %c64
// CHECK-COUNT-8:   memref.load %[[TILE]]
// CHECK-COUNT-8:   llvm.store
// CHECK:         } else {
// CHECK:           scf.if
// CHECK:             llvm.store
func.func @transpose(%x: memref<3x1000x500xf32>, %y: memref<3x500x1000xf32>) {
  linalg.transpose ins(%x : memref<3x1000x500xf32>) outs(%y : memref<3x500x1000xf32>) permutation = [0, 2, 1]
  return
}

// -----

// Only what is turned goes there.

// CHECK-LABEL: func.func @turned
// CHECK-SAME:    %{{[a-z0-9]+}}: memref<256x256xbf16>, %[[B:[a-z0-9]+]]: memref<256x256xbf16>
// CHECK:       gpu.launch
// CHECK-SAME:    workgroup(%[[TILE:.+]] : memref<64x66xi16, #gpu.address_space<workgroup>>)
// CHECK:         gpu.barrier
// CHECK:         memref.extract_aligned_pointer_as_index %[[B]]
// CHECK:         arith.addf
func.func @turned(%a: memref<256x256xbf16>, %b: memref<256x256xbf16>, %y: memref<256x256xbf16>) {
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (j, i)>, affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
                  iterator_types = ["parallel", "parallel"]}
      ins(%a, %b : memref<256x256xbf16>, memref<256x256xbf16>) outs(%y : memref<256x256xbf16>) {
  ^bb0(%x: bf16, %z: bf16, %old: bf16):
    %0 = arith.addf %x, %z : bf16
    linalg.yield %0 : bf16
  }
  return
}

// -----

// Tiles of few channels have all, and more of the other loop.

// CHECK-LABEL: func.func @channels
// CHECK:       workgroup(%{{.+}} : memref<256x5xi32,
func.func @channels(%x: memref<8x1024x3xf32>, %y: memref<8x3x1024xf32>) {
  linalg.transpose ins(%x : memref<8x1024x3xf32>) outs(%y : memref<8x3x1024xf32>) permutation = [0, 2, 1]
  return
}

// -----

// Heads that change places with rows keep what is innermost: no tile.

// CHECK-LABEL: func.func @heads
// CHECK-NOT:   workgroup
// CHECK:       vector<8xi16>
func.func @heads(%x: memref<2x128x12x64xbf16>, %y: memref<2x12x128x64xbf16>) {
  linalg.transpose ins(%x : memref<2x128x12x64xbf16>) outs(%y : memref<2x12x128x64xbf16>) permutation = [0, 2, 1, 3]
  return
}
