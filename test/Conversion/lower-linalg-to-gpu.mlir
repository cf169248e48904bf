// RUN: fp8-opt %s --fp8-lower-linalg-to-gpu --split-input-file | FileCheck %s

// A thread for each element of the parallel loops, in blocks of 256.

// CHECK-LABEL: func.func @fill
// CHECK:       gpu.launch blocks(%[[BX:[a-z0-9_]+]], {{.*}}) threads(%[[TX:[a-z0-9_]+]],
// CHECK-SAME:    module(@fp8_kernels) function(@fill_0)
// CHECK:         %[[OFFSET:.+]] = arith.muli %[[BX]], %{{.*}} : index
// CHECK:         %[[INDEX:.+]] = arith.addi %[[OFFSET]], %[[TX]]
// CHECK:         %[[INSIDE:.+]] = arith.cmpi ult, %[[INDEX]],
// CHECK:         scf.if %[[INSIDE]]
// CHECK:           %[[J:.+]] = arith.remui %[[INDEX]],
// CHECK:           %[[I:.+]] = arith.divui %[[INDEX]],
// CHECK:           memref.store %{{.*}}, %{{.*}}[%[[I]], %[[J]]]
func.func @fill(%x: memref<8x16xf32>, %value: f32) {
  linalg.fill ins(%value : f32) outs(%x : memref<8x16xf32>)
  return
}

// -----

// A reduction runs in the thread of its result, in order.

// CHECK-LABEL: func.func @sum
// CHECK:       gpu.launch
// CHECK:         %[[INIT:.+]] = memref.load %{{.*}}[%[[I:.+]]] : memref<8xf32>
// CHECK:         %[[SUM:.+]] = scf.for %[[K:.+]] = {{.*}} iter_args(%[[ACC:.+]] = %[[INIT]])
// CHECK:           %[[X:.+]] = memref.load %{{.*}}[%[[I]], %[[K]]]
// CHECK:           arith.addf %[[X]], %[[ACC]]
// CHECK:         memref.store %[[SUM]], %{{.*}}[%[[I]]]
func.func @sum(%x: memref<8x16xf32>, %y: memref<8xf32>) {
  linalg.generic {indexing_maps = [affine_map<(i, k) -> (i, k)>, affine_map<(i, k) -> (i)>],
                  iterator_types = ["parallel", "reduction"]}
      ins(%x : memref<8x16xf32>) outs(%y : memref<8xf32>) {
  ^bb0(%a: f32, %acc: f32):
    %0 = arith.addf %a, %acc : f32
    linalg.yield %0 : f32
  }
  return
}

// -----

// An unsigned maximum over several loops is taken by many threads.

// CHECK-LABEL: func.func @maximum
// CHECK:       gpu.launch {{.*}} function(@maximum_0)
// CHECK:         %[[MAX:.+]] = scf.for {{.*}} iter_args(%{{.*}} = %c0_i32)
// CHECK:         memref.atomic_rmw maxu %[[MAX]],
func.func @maximum(%x: memref<8x16xi32>, %y: memref<1x1xi32>) {
  linalg.generic {indexing_maps = [affine_map<(i, k) -> (i, k)>, affine_map<(i, k) -> (0, 0)>],
                  iterator_types = ["reduction", "reduction"]}
      ins(%x : memref<8x16xi32>) outs(%y : memref<1x1xi32>) {
  ^bb0(%a: i32, %acc: i32):
    %0 = arith.maxui %acc, %a : i32
    linalg.yield %0 : i32
  }
  return
}

// -----

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

// One that does more stays with the host, with launches in it.

// CHECK-LABEL: func.func @host_forall
// CHECK:       scf.forall
// CHECK:         gpu.launch {{.*}} function(@fill_0)
func.func @host_forall(%x: memref<8x16xf32>, %value: f32) {
  scf.forall (%i) in (8) {
    %row = memref.subview %x[%i, 0] [1, 16] [1, 1] : memref<8x16xf32> to memref<16xf32, strided<[1], offset: ?>>
    linalg.fill ins(%value : f32) outs(%row : memref<16xf32, strided<[1], offset: ?>>)
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

// Of several reduction loops the longest is the one that is shared, here the
// channels and not the window.

// CHECK-LABEL: func.func @convolution
// CHECK:       gpu.launch {{.*}} function(@conv_2d_nhwc_hwcf_0)
// CHECK:         %[[LANE:.+]] = arith.remui
// CHECK:         scf.for %{{.*}} = %c0
// CHECK:         scf.for %{{.*}} = %c0
// CHECK:         scf.for %{{.*}} = %[[LANE]]
// CHECK-COUNT-5: gpu.shuffle xor
// CHECK-NOT:     gpu.shuffle
func.func @convolution(%x: memref<1x8x8x64xf32>, %w: memref<3x3x64x4xf32>, %y: memref<1x6x6x4xf32>) {
  linalg.conv_2d_nhwc_hwcf ins(%x, %w : memref<1x8x8x64xf32>, memref<3x3x64x4xf32>) outs(%y : memref<1x6x6x4xf32>)
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

// A product of sums is no sum of products: its thread keeps the order.

// CHECK-LABEL: func.func @product
// CHECK-NOT:   gpu.shuffle
func.func @product(%a: memref<4x64xf32>, %b: memref<4x64xf32>, %y: memref<4xf32>) {
  linalg.generic {indexing_maps = [affine_map<(i, k) -> (i, k)>, affine_map<(i, k) -> (i, k)>, affine_map<(i, k) -> (i)>],
                  iterator_types = ["parallel", "reduction"]}
      ins(%a, %b : memref<4x64xf32>, memref<4x64xf32>) outs(%y : memref<4xf32>) {
  ^bb0(%x: f32, %w: f32, %acc: f32):
    %0 = arith.addf %x, %w : f32
    %1 = arith.mulf %0, %acc : f32
    linalg.yield %1 : f32
  }
  return
}
