// RUN: fp8-opt %s --fp8-lower-linalg-to-gpu --canonicalize --cse --split-input-file | FileCheck %s

// Lanes of a warp share a row: each reads 16 bytes at a time, several times under
// way, and they meet by shuffles. One of them adds what was there.

// CHECK-LABEL: func.func @rows
// CHECK-SAME:    %[[X:[a-z0-9]+]]: memref<8192x4096xf32>, %[[Y:[a-z0-9]+]]: memref<8192xf32>
// CHECK-DAG:   %[[NEUTRAL:.+]] = arith.constant -0.000000e+00 : f32
// CHECK:       gpu.launch {{.*}} function(@generic_0)
// CHECK:         %[[LANE:.+]] = arith.remui %{{.*}}, %c32
// CHECK:         %[[SUM:.+]] = scf.if
// CHECK:           scf.if
// CHECK:             scf.for {{.*}} iter_args(%{{.*}} = %[[NEUTRAL]])
// CHECK-COUNT-4:       llvm.load {{.*}} -> vector<4xi32>
// CHECK-COUNT-16:      arith.addf
// CHECK:         gpu.shuffle xor %[[SUM]], %c16_i32
// CHECK-COUNT-4: gpu.shuffle xor
// CHECK:         arith.cmpi eq, %[[LANE]], %c0
// CHECK:         scf.if
// CHECK:           memref.extract_aligned_pointer_as_index %[[Y]]
// CHECK:           llvm.load
// CHECK:           arith.addf
// CHECK:           llvm.store
func.func @rows(%x: memref<8192x4096xf32>, %y: memref<8192xf32>) {
  linalg.generic {indexing_maps = [affine_map<(i, k) -> (i, k)>, affine_map<(i, k) -> (i)>], iterator_types = ["parallel", "reduction"]}
      ins(%x : memref<8192x4096xf32>) outs(%y : memref<8192xf32>) {
  ^bb0(%a: f32, %acc: f32):
    %0 = arith.addf %a, %acc : f32
    linalg.yield %0 : f32
  }
  return
}

// -----

// Columns lie in threads beside each other, several in each; those below each
// other take turns along the rows, and meet in shared memory. So few columns
// have parts of their rows in different blocks; these are reduced after them.

// CHECK-LABEL: func.func @columns
// CHECK:       %[[PARTS:.+]] = memref.alloc() : memref<16x1024xf32>
// CHECK:       gpu.launch {{.*}} function(@generic_0) workgroup(%[[SHARED:.+]] : memref<2048xf32, #gpu.address_space<workgroup>>)
// CHECK:         scf.for
// CHECK:           llvm.load {{.*}} -> vector<8xi16>
// CHECK:         memref.store %{{.*}}, %[[SHARED]]
// CHECK:         gpu.barrier
// CHECK:         memref.load %[[SHARED]]
// CHECK:         memref.store %{{.*}}, %[[PARTS]]
// CHECK:       gpu.launch {{.*}} function(@generic_1)
// CHECK:       memref.dealloc %[[PARTS]]
func.func @columns(%x: memref<8192x1024xbf16>, %y: memref<1024xf32>) {
  linalg.generic {indexing_maps = [affine_map<(k, i) -> (k, i)>, affine_map<(k, i) -> (i)>], iterator_types = ["reduction", "parallel"]}
      ins(%x : memref<8192x1024xbf16>) outs(%y : memref<1024xf32>) {
  ^bb0(%a: bf16, %acc: f32):
    %0 = arith.extf %a : bf16 to f32
    %1 = arith.addf %0, %acc : f32
    linalg.yield %1 : f32
  }
  return
}

// -----

// The maximum of a whole tensor, whose length shows when the program runs.

// CHECK-LABEL: func.func @maximum
// CHECK:       memref.alloc() : memref<256x1xi32>
// CHECK:       gpu.launch {{.*}} function(@generic_0)
// CHECK:         arith.maxui
// CHECK:       gpu.launch {{.*}} function(@generic_1)
func.func @maximum(%x: memref<?x?xi32>, %y: memref<1x1xi32>) {
  linalg.generic {indexing_maps = [affine_map<(i, k) -> (i, k)>, affine_map<(i, k) -> (0, 0)>], iterator_types = ["reduction", "reduction"]}
      ins(%x : memref<?x?xi32>) outs(%y : memref<1x1xi32>) {
  ^bb0(%a: i32, %acc: i32):
    %0 = arith.maxui %acc, %a : i32
    linalg.yield %0 : i32
  }
  return
}

// -----

// Narrow sums meet in f32, and are rounded once.

// CHECK-LABEL: func.func @narrow
// CHECK:         %[[OWN:.+]] = scf.if {{.*}} -> (bf16)
// CHECK:         %[[WIDE:.+]] = arith.extf %[[OWN]] : bf16 to f32
// CHECK:         gpu.shuffle xor %[[WIDE]], {{.*}} : f32
// CHECK:         arith.truncf {{.*}} : f32 to bf16
func.func @narrow(%x: memref<512x64xbf16>, %y: memref<512xbf16>) {
  linalg.generic {indexing_maps = [affine_map<(i, k) -> (i, k)>, affine_map<(i, k) -> (i)>], iterator_types = ["parallel", "reduction"]}
      ins(%x : memref<512x64xbf16>) outs(%y : memref<512xbf16>) {
  ^bb0(%a: bf16, %acc: bf16):
    %0 = arith.addf %a, %acc : bf16
    linalg.yield %0 : bf16
  }
  return
}

// -----

// Sums of products that are no contraction are shared like others.

// CHECK-LABEL: func.func @convolution
// CHECK:       gpu.launch {{.*}} function(@conv_2d_nhwc_hwcf_0)
// CHECK-SAME:    workgroup
// CHECK:         scf.for
// CHECK:           llvm.load {{.*}} -> vector<4xi32>
// CHECK:         gpu.barrier
func.func @convolution(%x: memref<1x8x8x64xf32>, %w: memref<3x3x64x4xf32>, %y: memref<1x6x6x4xf32>) {
  linalg.conv_2d_nhwc_hwcf ins(%x, %w : memref<1x8x8x64xf32>, memref<3x3x64x4xf32>) outs(%y : memref<1x6x6x4xf32>)
  return
}

// -----

// What an output is filled with is where its reduction begins: nothing writes it
// to memory before.

// CHECK-LABEL: func.func @filled
// CHECK-DAG:     %[[START:.+]] = arith.constant 7.000000e+00 : f32
// CHECK:         gpu.launch
// CHECK-NOT:     @fill
// CHECK:         arith.addf %{{.*}}, %[[START]]
// CHECK:         llvm.store
// CHECK-NOT:     gpu.launch
// CHECK:         return
func.func @filled(%x: memref<64x4xf32>) -> memref<4xf32> {
  %c = arith.constant 7.0 : f32
  %y = memref.alloc() : memref<4xf32>
  linalg.fill ins(%c : f32) outs(%y : memref<4xf32>)
  linalg.generic {indexing_maps = [affine_map<(k, i) -> (k, i)>, affine_map<(k, i) -> (i)>], iterator_types = ["reduction", "parallel"]}
      ins(%x : memref<64x4xf32>) outs(%y : memref<4xf32>) {
  ^bb0(%a: f32, %acc: f32):
    %0 = arith.addf %a, %acc : f32
    linalg.yield %0 : f32
  }
  return %y : memref<4xf32>
}

// -----

// Not where a caller has the memory, another reads it in between, or the
// reduction writes a part of it.

// CHECK-LABEL: func.func @of_caller
// CHECK:         gpu.launch {{.*}}@fill
// CHECK-LABEL: func.func @read_between
// CHECK:         gpu.launch {{.*}}@fill
// CHECK-LABEL: func.func @of_a_column
// CHECK:         gpu.launch {{.*}}@fill
func.func @of_caller(%x: memref<64x4xf32>, %y: memref<4xf32>) {
  %c = arith.constant 7.0 : f32
  linalg.fill ins(%c : f32) outs(%y : memref<4xf32>)
  linalg.generic {indexing_maps = [affine_map<(k, i) -> (k, i)>, affine_map<(k, i) -> (i)>], iterator_types = ["reduction", "parallel"]}
      ins(%x : memref<64x4xf32>) outs(%y : memref<4xf32>) {
  ^bb0(%a: f32, %acc: f32):
    %0 = arith.addf %a, %acc : f32
    linalg.yield %0 : f32
  }
  return
}
func.func @read_between(%x: memref<64x4xf32>, %z: memref<4xf32>) -> memref<4xf32> {
  %c = arith.constant 7.0 : f32
  %y = memref.alloc() : memref<4xf32>
  linalg.fill ins(%c : f32) outs(%y : memref<4xf32>)
  memref.copy %y, %z : memref<4xf32> to memref<4xf32>
  linalg.generic {indexing_maps = [affine_map<(k, i) -> (k, i)>, affine_map<(k, i) -> (i)>], iterator_types = ["reduction", "parallel"]}
      ins(%x : memref<64x4xf32>) outs(%y : memref<4xf32>) {
  ^bb0(%a: f32, %acc: f32):
    %0 = arith.addf %a, %acc : f32
    linalg.yield %0 : f32
  }
  return %y : memref<4xf32>
}
func.func @of_a_column(%x: memref<64x4xf32>) -> memref<4x3xf32> {
  %c = arith.constant 7.0 : f32
  %y = memref.alloc() : memref<4x3xf32>
  linalg.fill ins(%c : f32) outs(%y : memref<4x3xf32>)
  linalg.generic {indexing_maps = [affine_map<(k, i) -> (k, i)>, affine_map<(k, i) -> (i, 1)>], iterator_types = ["reduction", "parallel"]}
      ins(%x : memref<64x4xf32>) outs(%y : memref<4x3xf32>) {
  ^bb0(%a: f32, %acc: f32):
    %0 = arith.addf %a, %acc : f32
    linalg.yield %0 : f32
  }
  return %y : memref<4x3xf32>
}

// -----

// Rows that are not aligned: a thread's turns go along each, and no place of a
// term is divided for.

// CHECK-LABEL: func.func @odd_rows
// CHECK:       gpu.launch
// CHECK:         scf.for %[[ROW:.+]] = %{{.*}} iter_args
// CHECK-NOT:       arith.remui
// CHECK:           scf.for %[[STEP:.+]] = %{{.*}} step %c512
// CHECK-NOT:         arith.divui
// CHECK-COUNT-4:     llvm.load {{.*}} -> i8
// CHECK:           scf.for %{{.+}} = %{{.*}} step %c128
func.func @odd_rows(%x: memref<201x577x577xi8>, %y: memref<577xi8>) {
  linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, j, k)>, affine_map<(i, j, k) -> (j)>], iterator_types = ["reduction", "parallel", "reduction"]}
      ins(%x : memref<201x577x577xi8>) outs(%y : memref<577xi8>) {
  ^bb0(%a: i8, %acc: i8):
    %0 = arith.ori %a, %acc : i8
    linalg.yield %0 : i8
  }
  return
}
