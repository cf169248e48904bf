// RUN: fp8-opt %s --fp8-lower-linalg-to-gpu --canonicalize --cse --split-input-file | FileCheck %s

// A thread has as many neighbours as 16 bytes hold. Whether they are aligned is
// known when the program runs: threads have single elements a block's threads
// apart otherwise.

// CHECK-LABEL: func.func @copy
// CHECK-SAME:    %[[X:[a-z0-9]+]]: memref<64x128xf32>, %[[Y:[a-z0-9]+]]: memref<64x128xf32, strided<[256, 1], offset: 4>>
// CHECK:       gpu.launch blocks(%[[BLOCK:[a-z0-9_]+]], {{.*}}) in (%{{.*}} = %c8,
// CHECK-SAME:      threads(%[[THREAD:[a-z0-9_]+]], {{.*}} module(@fp8_kernels) function(@copy_0)
// CHECK-DAG:     %[[FROM:.+]] = memref.extract_aligned_pointer_as_index %[[X]]
// CHECK-DAG:     %[[TO:.+]] = memref.extract_aligned_pointer_as_index %[[Y]]
// CHECK-DAG:     arith.andi %[[FROM]], %c15
// CHECK-DAG:     arith.andi %[[TO]], %c15
// CHECK:         %[[ALIGNED:.+]] = arith.cmpi eq, %{{.*}}, %c0
// CHECK:         scf.if %[[ALIGNED]]
// CHECK:           %[[UNIT:.+]] = arith.addi %{{.*}}, %[[THREAD]]
// CHECK:           scf.if
// CHECK:             %[[J:.+]] = arith.remui %[[UNIT]], %c32
// CHECK:             %[[I:.+]] = arith.divui %[[UNIT]], %c32
// CHECK:             llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xi32>
// CHECK:             llvm.store %{{.*}} {alignment = 16 : i64} : vector<4xi32>, !llvm.ptr<1>
// CHECK:         } else {
// CHECK-COUNT-4:   llvm.load %{{.*}} {alignment = 4 : i64} : !llvm.ptr<1> -> i32
// CHECK-COUNT-4:   llvm.store %{{.*}} {alignment = 4 : i64} : i32, !llvm.ptr<1>
// CHECK:         gpu.terminator
func.func @copy(%x: memref<64x128xf32>, %y: memref<64x128xf32, strided<[256, 1], offset: 4>>) {
  memref.copy %x, %y : memref<64x128xf32> to memref<64x128xf32, strided<[256, 1], offset: 4>>
  return
}

// -----

// Loops through which all operands go as through one are one; an allocation is
// aligned, and needs no check.

// CHECK-LABEL: func.func @merged
// CHECK:       gpu.launch
// CHECK-NOT:     memref.extract_aligned_pointer_as_index {{.*}} -> index{{[[:space:]]+}}arith.andi
// CHECK-NOT:     arith.remui
// CHECK:         llvm.store %{{.*}} {alignment = 16 : i64} : vector<8xi16>
func.func @merged(%value: bf16) -> memref<4x6x10xbf16> {
  %x = memref.alloc() : memref<4x6x10xbf16>
  linalg.fill ins(%value : bf16) outs(%x : memref<4x6x10xbf16>)
  return %x : memref<4x6x10xbf16>
}

// -----

// So are those of extents that show when the program runs; the last unit may
// have fewer elements.

// CHECK-LABEL: func.func @dynamic
// CHECK-SAME:    %[[X:[a-z0-9]+]]: memref<?x?xf32>
// CHECK:       gpu.launch
// CHECK-NOT:     arith.remui
// CHECK:         llvm.load {{.*}} -> vector<4xi32>
// CHECK:         llvm.store {{.*}} : vector<4xi32>
// CHECK:         } else {
// CHECK:           scf.for
// CHECK:             llvm.store {{.*}} : i32
func.func @dynamic(%x: memref<?x?xf32>, %y: memref<?x?xf32>) {
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%x : memref<?x?xf32>) outs(%y : memref<?x?xf32>) {
  ^bb0(%a: f32, %old: f32):
    %0 = arith.addf %a, %a : f32
    linalg.yield %0 : f32
  }
  return
}

// -----

// Elements of one byte, masks among them, come in words; what is broadcast along
// the neighbours is loaded once. Of the widest elements there are 16 bytes.

// CHECK-LABEL: func.func @mixed
// CHECK:         llvm.load %{{.*}} {alignment = 8 : i64} : !llvm.ptr<1> -> vector<4xi16>
// CHECK:         %[[MASK:.+]] = llvm.load %{{.*}} {alignment = 4 : i64} : !llvm.ptr<1> -> vector<4xi8>
// CHECK:         llvm.bitcast %[[MASK]] : vector<4xi8> to vector<1xi32>
// CHECK:         %[[ROW:.+]] = llvm.load %{{.*}} {alignment = 4 : i64} : !llvm.ptr<1> -> i32
// CHECK-NOT:     llvm.load
// CHECK-COUNT-4: arith.select
// CHECK:         llvm.store %{{.*}} {alignment = 16 : i64} : vector<4xi32>
// CHECK:         } else {
func.func @mixed(%x: memref<8x64xbf16>, %mask: memref<8x64xi1>, %row: memref<8xf32>, %y: memref<8x64xf32>) {
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i, j)>],
                  iterator_types = ["parallel", "parallel"]}
      ins(%x, %mask, %row : memref<8x64xbf16>, memref<8x64xi1>, memref<8xf32>) outs(%y : memref<8x64xf32>) {
  ^bb0(%a: bf16, %c: i1, %b: f32, %old: f32):
    %0 = arith.extf %a : bf16 to f32
    %1 = arith.select %c, %0, %b : f32
    linalg.yield %1 : f32
  }
  return
}

// -----

// Rows of 7 elements are at no multiple of 16 bytes: a thread has several
// elements a block's threads apart, whose loads are under way together.

// CHECK-LABEL: func.func @odd
// CHECK-NOT:     vector
// CHECK:         scf.if
// CHECK-COUNT-8: llvm.load {{.*}} -> i32
// CHECK-COUNT-8: llvm.store
// CHECK:         } else {
// CHECK:           scf.for
func.func @odd(%x: memref<?x7xf32, strided<[9, 1]>>, %y: memref<?x7xf32>) {
  linalg.copy ins(%x : memref<?x7xf32, strided<[9, 1]>>) outs(%y : memref<?x7xf32>)
  return
}

// -----

// A row that is read by its index is read as wide as what is written; its index
// is loaded once.

// CHECK-LABEL: func.func @gather
// CHECK:         %[[INDEX:.+]] = llvm.load {{.*}} -> i64
// CHECK-NOT:     -> i64
// CHECK:         llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xi32>
// CHECK:         llvm.store %{{.*}} {alignment = 16 : i64} : vector<4xi32>
// CHECK:         } else {
func.func @gather(%table: memref<100x64xf32>, %index: memref<5xi64>, %y: memref<5x64xf32>) {
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%index : memref<5xi64>) outs(%y : memref<5x64xf32>) {
  ^bb0(%i: i64, %old: f32):
    %row = arith.index_cast %i : i64 to index
    %column = linalg.index 1 : index
    %0 = memref.load %table[%row, %column] : memref<100x64xf32>
    %1 = arith.negf %0 : f32
    linalg.yield %1 : f32
  }
  return
}

// -----

// A reduction whose terms have an order runs in the thread of its results, side
// by side for several of these.

// CHECK-LABEL: func.func @product
// CHECK-NOT:   gpu.shuffle
// CHECK:       %[[PRODUCTS:.+]]:4 = scf.for {{.*}} iter_args
// CHECK:         llvm.load {{.*}} -> vector<4xi32>
// CHECK-COUNT-4: arith.mulf
// CHECK:       llvm.store {{.*}} : vector<4xi32>
func.func @product(%a: memref<64x4xf32>, %y: memref<4xf32>) {
  linalg.generic {indexing_maps = [affine_map<(k, i) -> (k, i)>, affine_map<(k, i) -> (i)>], iterator_types = ["reduction", "parallel"]}
      ins(%a : memref<64x4xf32>) outs(%y : memref<4xf32>) {
  ^bb0(%x: f32, %acc: f32):
    %0 = arith.addf %x, %acc : f32
    %1 = arith.mulf %0, %acc : f32
    linalg.yield %1 : f32
  }
  return
}

// -----

// Rows of 77 elements of 2 bytes that follow each other without a gap: a thread
// writes 8 bytes over the ends of rows, in indices of 32 bits.

// CHECK-LABEL: func.func @flat
// CHECK:         scf.if
// CHECK:           %[[NEXT:.+]] = arith.addi %[[FIRST:.+]], %c1_i32
// CHECK:           %[[BEHIND:.+]] = arith.cmpi uge, %[[NEXT]], %c77_i32
// CHECK:           %[[OWN:.+]] = arith.addi %[[FIRST]], %c-76_i32
// CHECK:           arith.select %[[BEHIND]], %[[OWN]], %[[NEXT]] : i32
// CHECK-COUNT-4:   llvm.load {{.*}} -> i16
// CHECK:           llvm.store %{{.*}} {alignment = 8 : i64} : vector<4xi16>
// CHECK:         } else {
func.func @flat(%x: memref<100x77xbf16>, %y: memref<100x3x77xbf16>) {
  linalg.broadcast ins(%x : memref<100x77xbf16>) outs(%y : memref<100x3x77xbf16>) dimensions = [1]
  return
}

// -----

// With nothing to read they are 16 bytes; what lies in the same order is read as
// wide as it is written.

// CHECK-LABEL: func.func @flat_mask
// CHECK-NOT:     llvm.load
// CHECK:         llvm.store %{{.*}} {alignment = 16 : i64} : vector<16xi8>
// CHECK-LABEL: func.func @flat_input
// CHECK:         llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<1> -> vector<8xi16>
// CHECK:         llvm.store %{{.*}} {alignment = 16 : i64} : vector<8xi16>
func.func @flat_mask(%y: memref<128x77xi1>) {
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} outs(%y : memref<128x77xi1>) {
  ^bb0(%old: i1):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %0 = arith.cmpi ule, %j, %i : index
    linalg.yield %0 : i1
  }
  return
}
func.func @flat_input(%x: memref<128x77xbf16>, %y: memref<128x77xbf16>) {
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%x : memref<128x77xbf16>) outs(%y : memref<128x77xbf16>) {
  ^bb0(%a: bf16, %old: bf16):
    %j = linalg.index 1 : index
    %k = arith.index_cast %j : index to i32
    %b = arith.sitofp %k : i32 to bf16
    %0 = arith.addf %a, %b : bf16
    linalg.yield %0 : bf16
  }
  return
}

// -----

// Rows that do not follow each other have single elements.

// CHECK-LABEL: func.func @gaps
// CHECK-NOT:     vector
// CHECK:         llvm.store {{.*}} : i16
// CHECK-NOT:     vector
// CHECK:         return
func.func @gaps(%x: memref<100x77xbf16>, %y: memref<100x77xbf16, strided<[79, 1]>>) {
  linalg.copy ins(%x : memref<100x77xbf16>) outs(%y : memref<100x77xbf16, strided<[79, 1]>>)
  return
}

// -----

// A window whose ends are multiples of what a thread has is read as wide: all of
// a thread's neighbours are in it, or none. Another is read element by element,
// of which a thread has fewer.

// CHECK-LABEL: func.func @window
// CHECK:         %[[ROUND:.+]] = arith.andi %{{.*}}, %c-8
// CHECK:         llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<1> -> vector<8xi16>
// CHECK:         llvm.store %{{.*}} {alignment = 16 : i64} : vector<8xi16>
// CHECK-LABEL: func.func @odd_window
// CHECK-NOT:     vector<8xi16>
// CHECK-COUNT-4: memref.load
// CHECK:         llvm.store %{{.*}} {alignment = 8 : i64} : vector<4xi16>
func.func @window(%x: memref<16x64xbf16>, %y: memref<16x80xbf16>, %zero: bf16) {
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} outs(%y : memref<16x80xbf16>) {
  ^bb0(%old: bf16):
    %c8 = arith.constant 8 : i32
    %c63 = arith.constant 63 : i32
    %c64 = arith.constant 64 : i32
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %column = arith.index_cast %j : index to i32
    %place = arith.subi %column, %c8 : i32
    %in = arith.cmpi ult, %place, %c64 : i32
    %own = arith.minui %place, %c63 : i32
    %k = arith.index_castui %own : i32 to index
    %a = memref.load %x[%i, %k] : memref<16x64xbf16>
    %0 = arith.select %in, %a, %zero : bf16
    linalg.yield %0 : bf16
  }
  return
}
func.func @odd_window(%x: memref<16x63xbf16>, %y: memref<16x80xbf16>, %zero: bf16) {
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} outs(%y : memref<16x80xbf16>) {
  ^bb0(%old: bf16):
    %c62 = arith.constant 62 : i32
    %c63 = arith.constant 63 : i32
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %column = arith.index_cast %j : index to i32
    %in = arith.cmpi ult, %column, %c63 : i32
    %own = arith.minui %column, %c62 : i32
    %k = arith.index_castui %own : i32 to index
    %a = memref.load %x[%i, %k] : memref<16x63xbf16>
    %0 = arith.select %in, %a, %zero : bf16
    linalg.yield %0 : bf16
  }
  return
}
