// RUN: fp8-opt %s --fp8-lower-linalg-to-gpu --split-input-file | FileCheck %s

// What a reduction only overwrites is stored in every iteration.

// CHECK-LABEL: func.func @overwrite
// CHECK:       gpu.launch
// CHECK:         scf.for
// CHECK-NOT:     iter_args
// CHECK:           memref.store
func.func @overwrite(%x: memref<16xf32>, %y: memref<f32>) {
  linalg.generic {indexing_maps = [affine_map<(k) -> (k)>, affine_map<(k) -> ()>],
                  iterator_types = ["reduction"]}
      ins(%x : memref<16xf32>) outs(%y : memref<f32>) {
  ^bb0(%a: f32, %old: f32):
    linalg.yield %a : f32
  }
  return
}

// -----

// The host cannot store, nor copy what is not contiguous; reads stay.

// CHECK-LABEL: func.func @host
// CHECK:       gpu.launch {{.*}} function(@copy_0)
// CHECK:       gpu.launch {{.*}} function(@store_1)
// CHECK:         memref.store
// CHECK:       memref.load
func.func @host(%x: memref<4x4xf32>, %y: memref<4x4xf32, strided<[8, 1]>>, %value: f32) -> f32 {
  %c0 = arith.constant 0 : index
  memref.copy %x, %y : memref<4x4xf32> to memref<4x4xf32, strided<[8, 1]>>
  memref.store %value, %x[%c0, %c0] : memref<4x4xf32>
  %0 = memref.load %x[%c0, %c0] : memref<4x4xf32>
  return %0 : f32
}

// -----

// A loop whose iterations are independent is a launch as well: what it stores,
// it stores in its threads.

// CHECK-LABEL: func.func @forall
// CHECK-SAME:  %[[N:[a-z0-9]+]]: index
// CHECK:       %[[COUNT:.+]] = affine.apply #{{.*}}()[%[[N]]]
// CHECK:       gpu.launch {{.*}} function(@forall_0)
// CHECK:         scf.if
// CHECK:           %[[STEPS:.+]] = arith.muli %{{.*}}, %c3
// CHECK:           %[[I:.+]] = arith.addi %c2{{.*}}, %[[STEPS]]
// CHECK:           memref.load %{{.*}}[%[[I]],
// CHECK:           scf.for
// CHECK:           memref.store %{{.*}}, %{{.*}}[%[[I]],
// CHECK:           llvm.store
// CHECK:           gpu.terminator
// CHECK-NOT:   gpu.launch
func.func @forall(%n: index, %x: memref<?x4xf32>, %p: !llvm.ptr) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.forall (%i, %j) = (2, 0) to (%n, 4) step (3, 1) {
    %0 = memref.load %x[%i, %j] : memref<?x4xf32>
    %1 = scf.for %k = %c0 to %j step %c1 iter_args(%sum = %0) -> (f32) {
      %2 = arith.addf %sum, %sum : f32
      scf.yield %2 : f32
    }
    memref.store %1, %x[%i, %j] : memref<?x4xf32>
    llvm.store %1, %p : f32, !llvm.ptr
  }
  return
}

// -----

// So does one that reads where a row of a state is, as calls of kernels in a
// loop do, even if it works on numbers otherwise: the host knows that.

// CHECK-LABEL: func.func @host_addresses
// CHECK:       scf.forall
// CHECK:         %[[ROW:.+]] = llvm.load
// CHECK:         gpu.launch {{.*}} function(@store_0)
func.func @host_addresses(%x: memref<8xi64>, %rows: !llvm.ptr) {
  scf.forall (%i) in (8) {
    %row = llvm.load %rows : !llvm.ptr -> !llvm.ptr
    %number = llvm.ptrtoint %row : !llvm.ptr to i64
    memref.store %number, %x[%i] : memref<8xi64>
  }
  return
}

// CHECK-LABEL: func.func @host_checks
// CHECK:       scf.forall
// CHECK:         llvm.load
// CHECK:         cf.assert
func.func @host_checks(%rows: !llvm.ptr) {
  scf.forall (%i) in (8) {
    %row = llvm.load %rows : !llvm.ptr -> !llvm.ptr
    %c5 = arith.constant 5 : index
    %isSmall = arith.cmpi ult, %i, %c5 : index
    cf.assert %isSmall, "expected a small number"
  }
  return
}

// -----

// A sum of products takes a warp for each element: lanes take turns along K, and
// one writes.

// CHECK-LABEL: func.func @matmul
// CHECK-SAME:    %[[A:[a-z0-9]+]]: memref<4x64xf32>, %[[B:[a-z0-9]+]]: memref<64x8xf32>, %[[C:[a-z0-9]+]]: memref<4x8xf32>
// CHECK-DAG:   %[[LANES:.+]] = arith.constant 32 : index
// CHECK:       gpu.launch {{.*}} function(@matmul_0)
// CHECK:         %[[LANE:.+]] = arith.remui %[[INDEX:.+]], %[[LANES]]
// CHECK:         %[[ELEMENT:.+]] = arith.divui %[[INDEX]], %[[LANES]]
// CHECK:         %[[N:.+]] = arith.remui %[[ELEMENT]],
// CHECK:         %[[M:.+]] = arith.divui %[[ELEMENT]],
// CHECK:         %[[ZERO:.+]] = arith.constant 0.000000e+00 : f32
// CHECK:         %[[OWN:.+]] = scf.for %[[K:.+]] = %[[LANE]] to %{{.*}} step %{{.*}} iter_args(%{{.*}} = %[[ZERO]])
// CHECK:           memref.load %[[A]][%[[M]], %[[K]]]
// CHECK:           memref.load %[[B]][%[[K]], %[[N]]]
// CHECK:         %[[OTHER:.+]], %{{.*}} = gpu.shuffle xor %[[OWN]],
// CHECK:         arith.addf %[[OWN]], %[[OTHER]]
// CHECK-COUNT-4: gpu.shuffle xor
// CHECK:         %[[SUM:.+]] = arith.addf
// CHECK:         %[[FIRST:.+]] = arith.cmpi eq, %[[LANE]],
// CHECK:         scf.if %[[FIRST]]
// CHECK:           %[[INIT:.+]] = memref.load %[[C]][%[[M]], %[[N]]]
// CHECK:           %[[ALL:.+]] = arith.addf %[[INIT]], %[[SUM]]
// CHECK:           memref.store %[[ALL]], %[[C]][%[[M]], %[[N]]]
func.func @matmul(%a: memref<4x64xf32>, %b: memref<64x8xf32>, %c: memref<4x8xf32>) {
  linalg.matmul ins(%a, %b : memref<4x64xf32>, memref<64x8xf32>) outs(%c : memref<4x8xf32>)
  return
}

// -----

// Narrow sums meet in f32, and are rounded once.

// CHECK-LABEL: func.func @narrow
// CHECK:       gpu.launch
// CHECK:         %[[OWN:.+]] = scf.for {{.*}} -> (bf16)
// CHECK:         %[[WIDE:.+]] = arith.extf %[[OWN]] : bf16 to f32
// CHECK:         gpu.shuffle xor %[[WIDE]], {{.*}} : f32
// CHECK:         scf.if
// CHECK:           %[[INIT:.+]] = memref.load {{.*}} : memref<4xbf16>
// CHECK:           %[[INIT_WIDE:.+]] = arith.extf %[[INIT]]
// CHECK:           %[[SUM:.+]] = arith.addf %[[INIT_WIDE]], %{{.*}} : f32
// CHECK:           %[[ROUNDED:.+]] = arith.truncf %[[SUM]] : f32 to bf16
// CHECK:           memref.store %[[ROUNDED]]
func.func @narrow(%a: memref<4x64xbf16>, %x: memref<64xbf16>, %y: memref<4xbf16>) {
  linalg.matvec ins(%a, %x : memref<4x64xbf16>, memref<64xbf16>) outs(%y : memref<4xbf16>)
  return
}

// -----

// CHECK-LABEL: func.func @integers
// CHECK:         %[[OWN:.+]] = scf.for {{.*}} -> (i32)
// CHECK:         %[[OTHER:.+]], %{{.*}} = gpu.shuffle xor %[[OWN]], {{.*}} : i32
// CHECK:         arith.addi %[[OWN]], %[[OTHER]]
func.func @integers(%a: memref<4x64xi8>, %x: memref<64xi8>, %y: memref<4xi32>) {
  linalg.matvec ins(%a, %x : memref<4x64xi8>, memref<64xi8>) outs(%y : memref<4xi32>)
  return
}

// -----

// A body that stores on its own is one launch with its loop.

// CHECK-LABEL: func.func @stores_besides
// CHECK:       gpu.launch
// CHECK-NOT:   gpu.launch
// CHECK:         memref.store %{{.*}}, %arg2
// CHECK-NOT:   gpu.launch
func.func @stores_besides(%x: memref<3xf32>, %y: memref<3xf32>, %z: memref<3xf32>) {
  linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%x : memref<3xf32>) outs(%y : memref<3xf32>) {
  ^bb0(%in: f32, %out: f32):
    %i = linalg.index 0 : index
    memref.store %in, %z[%i] : memref<3xf32>
    linalg.yield %in : f32
  }
  return
}
