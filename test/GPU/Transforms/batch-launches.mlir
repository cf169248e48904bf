// RUN: fp8-opt %s --fp8-batch-launches --split-input-file | FileCheck %s

// Launches of one kernel that do not depend on each other are one, with the
// arguments of all; one that all have is there once.

// CHECK: #[[GRID:.+]] = affine_map<()[s0] -> ((s0 ceildiv 256) * 2)>
// CHECK: #[[BOTH:.+]] = #fp8_gpu.launch<{{.*}}name = "x_0"{{.*}}name = "x_1"{{.*}}name = "s_0"{{.*}}name = "y_0"{{.*}}name = "y_1"
// CHECK-SAME: params = [#fp8_gpu.pointer<0>, #fp8_gpu.pointer<1>, #fp8_gpu.pointer<2>, #fp8_gpu.pointer<3>, #fp8_gpu.pointer<4>, #fp8_gpu.value
// CHECK-SAME: grid = #[[GRID]], block = 256, overlap = true>
#launch = #fp8_gpu.launch<
  arguments = [#fp8_gpu.argument<name = "x", element = f32, rank = 1, access = read, alignment = 4>,
               #fp8_gpu.argument<name = "s", element = f32, rank = 1, access = read, alignment = 4>,
               #fp8_gpu.argument<name = "y", element = f32, rank = 1, access = write, alignment = 4>],
  extents = [#fp8_gpu.extent<"n", 0, 0>],
  params = [#fp8_gpu.pointer<0>, #fp8_gpu.pointer<1>, #fp8_gpu.pointer<2>,
            #fp8_gpu.value<affine_map<()[s0] -> (s0)> : i32>],
  grid = affine_map<()[s0] -> (s0 ceildiv 256)>, block = 256, overlap = true>
!m = memref<512xf32>
!s = memref<1xf32>

module attributes {fp8_gpu.disjoint} {
  // CHECK-LABEL: func.func @independent
  // CHECK: linalg.generic {{.*}} outs(%arg5, %arg6 : memref<1xf32>, memref<1xf32>)
  // CHECK: fp8_gpu.launch @kernels::@double_x2 #[[BOTH]] ins(%arg0, %arg1, %arg4 : {{.*}}) outs(%arg2, %arg3 :
  // CHECK: return
  func.func @independent(%a: !m, %b: !m, %x: !m, %y: !m, %s: !s, %f: !s, %g: !s) {
    %zero = arith.constant 0.0 : f32
    linalg.fill ins(%zero : f32) outs(%f : !s)
    fp8_gpu.launch @kernels::@double #launch ins(%a, %s : !m, !s) outs(%x : !m)
    linalg.fill ins(%zero : f32) outs(%g : !s)
    fp8_gpu.launch @kernels::@double #launch ins(%b, %s : !m, !s) outs(%y : !m)
    return
  }

  // CHECK-LABEL: func.func @chain
  // CHECK-COUNT-2: fp8_gpu.launch @kernels::@double #
  func.func @chain(%a: !m, %x: !m, %y: !m, %s: !s) {
    fp8_gpu.launch @kernels::@double #launch ins(%a, %s : !m, !s) outs(%x : !m)
    fp8_gpu.launch @kernels::@double #launch ins(%x, %s : !m, !s) outs(%y : !m)
    return
  }

  // In a loop the second may read what the first has written.
  // CHECK-LABEL: func.func @carried_launches
  // CHECK-COUNT-2: fp8_gpu.launch @kernels::@double #
  func.func @carried_launches(%a: !m, %b: !m, %y: !m, %s: !s, %n: index) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%x = %a) -> (!m) {
      fp8_gpu.launch @kernels::@double #launch ins(%b, %s : !m, !s) outs(%x : !m)
      fp8_gpu.launch @kernels::@double #launch ins(%a, %s : !m, !s) outs(%y : !m)
      scf.yield %x : !m
    }
    return
  }

  // What is between them reads what the first has written.
  // CHECK-LABEL: func.func @between
  // CHECK: fp8_gpu.launch @kernels::@double #
  // CHECK: memref.copy
  // CHECK: fp8_gpu.launch @kernels::@double #
  func.func @between(%a: !m, %b: !m, %x: !m, %y: !m, %z: !m, %s: !s) {
    fp8_gpu.launch @kernels::@double #launch ins(%a, %s : !m, !s) outs(%x : !m)
    memref.copy %x, %z : !m to !m
    fp8_gpu.launch @kernels::@double #launch ins(%b, %s : !m, !s) outs(%y : !m)
    return
  }

  // So does what the body of a loop nest loads.
  // CHECK-LABEL: func.func @inside
  // CHECK: fp8_gpu.launch @kernels::@double #
  // CHECK: linalg.generic
  // CHECK: fp8_gpu.launch @kernels::@double #
  func.func @inside(%a: !m, %b: !m, %x: !m, %y: !m, %z: !s, %s: !s) {
    fp8_gpu.launch @kernels::@double #launch ins(%a, %s : !m, !s) outs(%x : !m)
    linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} outs(%z : !s) {
    ^bb0(%out: f32):
      %i = linalg.index 0 : index
      %0 = memref.load %x[%i] : !m
      linalg.yield %0 : f32
    }
    fp8_gpu.launch @kernels::@double #launch ins(%b, %s : !m, !s) outs(%y : !m)
    return
  }

  // Where it loads something else, nothing is in the way.
  // CHECK-LABEL: func.func @inside_elsewhere
  // CHECK: linalg.generic
  // CHECK: fp8_gpu.launch @kernels::@double_x2 #
  func.func @inside_elsewhere(%a: !m, %b: !m, %x: !m, %y: !m, %z: !s, %s: !s) {
    fp8_gpu.launch @kernels::@double #launch ins(%a, %s : !m, !s) outs(%x : !m)
    linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} outs(%z : !s) {
    ^bb0(%out: f32):
      %i = linalg.index 0 : index
      %0 = memref.load %a[%i] : !m
      linalg.yield %0 : f32
    }
    fp8_gpu.launch @kernels::@double #launch ins(%b, %s : !m, !s) outs(%y : !m)
    return
  }

  // Nobody looks at where one stores.
  // CHECK-LABEL: func.func @inside_stores
  // CHECK: fp8_gpu.launch @kernels::@double #
  // CHECK: linalg.generic
  // CHECK: fp8_gpu.launch @kernels::@double #
  func.func @inside_stores(%a: !m, %b: !m, %x: !m, %y: !m, %z: !s, %s: !s) {
    fp8_gpu.launch @kernels::@double #launch ins(%a, %s : !m, !s) outs(%x : !m)
    linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} outs(%z : !s) {
    ^bb0(%out: f32):
      %i = linalg.index 0 : index
      memref.store %out, %b[%i] : !m
      linalg.yield %out : f32
    }
    fp8_gpu.launch @kernels::@double #launch ins(%b, %s : !m, !s) outs(%y : !m)
    return
  }

  // A fill stays behind what reads the memory before.
  // CHECK-LABEL: func.func @fill_after_load
  // CHECK: linalg.fill
  // CHECK: memref.load
  // CHECK: linalg.fill
  func.func @fill_after_load(%f: !s, %g: !s, %z: !s) {
    %zero = arith.constant 0.0 : f32
    linalg.fill ins(%zero : f32) outs(%f : !s)
    linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} outs(%z : !s) {
    ^bb0(%out: f32):
      %i = linalg.index 0 : index
      %0 = memref.load %g[%i] : !s
      linalg.yield %0 : f32
    }
    linalg.fill ins(%zero : f32) outs(%g : !s)
    return
  }

  // CHECK-LABEL: func.func @other_sizes
  // CHECK-COUNT-2: fp8_gpu.launch @kernels::@double #
  func.func @other_sizes(%a: !m, %b: memref<256xf32>, %x: !m, %y: memref<256xf32>, %s: !s) {
    fp8_gpu.launch @kernels::@double #launch ins(%a, %s : !m, !s) outs(%x : !m)
    fp8_gpu.launch @kernels::@double #launch ins(%b, %s : memref<256xf32>, !s) outs(%y : memref<256xf32>)
    return
  }

  // More blocks fill a GPU by themselves.
  // CHECK-LABEL: func.func @large
  // CHECK-COUNT-2: fp8_gpu.launch @kernels::@double #
  func.func @large(%a: memref<1048576xf32>, %b: memref<1048576xf32>, %x: memref<1048576xf32>, %y: memref<1048576xf32>, %s: !s) {
    fp8_gpu.launch @kernels::@double #launch ins(%a, %s : memref<1048576xf32>, !s) outs(%x : memref<1048576xf32>)
    fp8_gpu.launch @kernels::@double #launch ins(%b, %s : memref<1048576xf32>, !s) outs(%y : memref<1048576xf32>)
    return
  }

  // CHECK-LABEL: gpu.module @kernels
  // CHECK: llvm.func @double_x2(%arg0: !llvm.ptr<1>, %arg1: !llvm.ptr<1>, %arg2: !llvm.ptr<1>, %arg3: !llvm.ptr<1>, %arg4: !llvm.ptr<1>, %arg5: i32)
  // CHECK-SAME: nvvm.kernel
  // CHECK: %[[BLOCK:.+]] = nvvm.read.ptx.sreg.ctaid.x : i32
  // CHECK: %[[GRID:.+]] = nvvm.read.ptx.sreg.nctaid.x : i32
  // CHECK: %[[BLOCKS:.+]] = llvm.udiv %[[GRID]], %{{.*}} : i32
  // CHECK: %[[NUMBER:.+]] = llvm.udiv %[[BLOCK]], %[[BLOCKS]] : i32
  // CHECK: %[[OWN:.+]] = llvm.urem %[[BLOCK]], %[[BLOCKS]] : i32
  // CHECK: llvm.icmp "ult" %[[NUMBER]]
  // CHECK: llvm.br ^[[BODY:.+]](%arg0, %arg2, %arg3, %arg5 :
  // CHECK: llvm.br ^[[BODY]](%arg1, %arg2, %arg4, %arg5 :
  // CHECK: llvm.zext %[[OWN]]
  // CHECK: llvm.func @double(
  gpu.module @kernels {
    llvm.func @double(%x: !llvm.ptr<1>, %s: !llvm.ptr<1>, %y: !llvm.ptr<1>, %n: i32) attributes {fp8_gpu.launch = #launch, nvvm.kernel} {
      %block = nvvm.read.ptx.sreg.ctaid.x : i32
      %place = llvm.zext %block : i32 to i64
      %from = llvm.getelementptr %x[%place] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, f32
      %to = llvm.getelementptr %y[%place] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, f32
      %0 = llvm.load %from : !llvm.ptr<1> -> f32
      %1 = llvm.fadd %0, %0 : f32
      llvm.store %1, %to : f32, !llvm.ptr<1>
      llvm.return
    }
  }
}

// -----

// Elsewhere arguments may be one and the same.

#launch = #fp8_gpu.launch<
  arguments = [#fp8_gpu.argument<name = "x", element = f32, rank = 1, access = read, alignment = 4>,
               #fp8_gpu.argument<name = "y", element = f32, rank = 1, access = write, alignment = 4>],
  extents = [], params = [#fp8_gpu.pointer<0>, #fp8_gpu.pointer<1>], grid = affine_map<() -> (1)>, block = 32>

// CHECK-LABEL: func.func @not_disjoint
// CHECK-COUNT-2: fp8_gpu.launch @kernels::@copy #
func.func @not_disjoint(%a: memref<4xf32>, %b: memref<4xf32>, %x: memref<4xf32>, %y: memref<4xf32>) {
  fp8_gpu.launch @kernels::@copy #launch ins(%a : memref<4xf32>) outs(%x : memref<4xf32>)
  fp8_gpu.launch @kernels::@copy #launch ins(%b : memref<4xf32>) outs(%y : memref<4xf32>)
  return
}
gpu.module @kernels {
  llvm.func @copy(%x: !llvm.ptr<1>, %y: !llvm.ptr<1>) attributes {fp8_gpu.launch = #launch, nvvm.kernel} {
    llvm.return
  }
}

// -----

!s = memref<1xf32>

module attributes {fp8_gpu.disjoint} {
  // Copies of arguments are part of the loop that fills others.
  // CHECK-LABEL: func.func @copies
  // CHECK: linalg.generic {{.*}} ins(%arg2, %arg3 : memref<1xf32>, memref<1xf32>) outs(%arg0, %arg4, %arg1, %arg5 : {{.*}}) {
  // CHECK-NEXT: ^bb0(%[[A:[a-z0-9_]+]]: f32, %[[B:[a-z0-9_]+]]: f32,
  // CHECK-NEXT: linalg.yield %[[ZERO:[a-z0-9_]+]], %[[A]], %[[ZERO]], %[[B]] :
  // CHECK-NOT: memref.copy
  // CHECK: return
  func.func @copies(%f: !s, %g: !s, %a: !s, %b: !s, %x: !s, %y: !s) {
    %zero = arith.constant 0.0 : f32
    linalg.fill ins(%zero : f32) outs(%f : !s)
    memref.copy %a, %x : !s to !s
    linalg.fill ins(%zero : f32) outs(%g : !s)
    memref.copy %b, %y : !s to !s
    return
  }

  // Not of what has just been written, and not to what is read before.
  // CHECK-LABEL: func.func @chained_copies
  // CHECK: memref.copy %arg0, %arg1
  // CHECK: memref.copy %arg1, %arg2
  // CHECK: memref.copy %arg0, %arg1
  func.func @chained_copies(%f: !s, %g: !s, %h: !s) {
    memref.copy %f, %g : !s to !s
    memref.copy %g, %h : !s to !s
    memref.copy %f, %g : !s to !s
    return
  }

  // What a loop hands on may be an argument's memory, and two of them the same.
  // CHECK-LABEL: func.func @carried
  // CHECK: scf.for
  // CHECK-NEXT: linalg.fill {{.*}} outs(%[[X:.*]] : memref<1xf32>)
  // CHECK-NEXT: memref.copy %arg0, %arg1
  // CHECK-NEXT: linalg.fill {{.*}} outs(%[[Y:.*]] : memref<1xf32>)
  // CHECK-NEXT: scf.yield
  func.func @carried(%a: !s, %b: !s, %n: index) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %zero = arith.constant 0.0 : f32
    %one = arith.constant 1.0 : f32
    %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%x = %a, %y = %a) -> (!s, !s) {
      linalg.fill ins(%zero : f32) outs(%x : !s)
      memref.copy %a, %b : !s to !s
      linalg.fill ins(%one : f32) outs(%y : !s)
      scf.yield %x, %y : !s, !s
    }
    return
  }

  // So may what an operation chooses; between fills it may be either's.
  // CHECK-LABEL: func.func @chosen
  // CHECK: linalg.fill {{.*}} outs(%arg0
  // CHECK: memref.copy
  // CHECK: linalg.fill {{.*}} outs(%arg1
  func.func @chosen(%a: !s, %b: !s, %c: !s, %is: i1) {
    %zero = arith.constant 0.0 : f32
    %either = arith.select %is, %a, %b : !s
    linalg.fill ins(%zero : f32) outs(%a : !s)
    memref.copy %c, %either : !s to !s
    linalg.fill ins(%zero : f32) outs(%b : !s)
    return
  }

  // Memory of its own is known, and so is what nobody writes.
  // CHECK-LABEL: func.func @allocated
  // CHECK: linalg.generic {{.*}} outs(%arg0, %arg1 :
  // CHECK: memref.copy
  // CHECK-NOT: linalg.fill
  // CHECK: return
  memref.global "private" constant @ones : !s = dense<1.0>
  func.func @allocated(%a: !s, %b: !s) {
    %zero = arith.constant 0.0 : f32
    %own = memref.alloc() : !s
    %ones = memref.get_global @ones : !s
    linalg.fill ins(%zero : f32) outs(%a : !s)
    memref.copy %ones, %own : !s to !s
    linalg.fill ins(%zero : f32) outs(%b : !s)
    memref.dealloc %own : !s
    return
  }
}
