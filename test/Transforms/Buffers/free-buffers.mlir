// RUN: fp8-opt %s --fp8-free-buffers | FileCheck %s

!m = memref<64xf32>

// After the last use by itself or by a view, in this block or in one within.
// CHECK-LABEL: func.func @views
// CHECK: %[[A:.*]] = memref.alloc() {bufferization.manual_deallocation}
// CHECK: scf.if
// CHECK: memref.store
// CHECK: }
// CHECK-NEXT: memref.dealloc %[[A]] {bufferization.manual_deallocation}
// CHECK: memref.load %arg1
func.func @views(%c: i1, %x: !m, %i: index) -> f32 {
  %f = arith.constant 0.0 : f32
  %a = memref.alloc() : !m
  linalg.fill ins(%f : f32) outs(%a : !m)
  %v = memref.subview %a[0] [32] [1] : !m to memref<32xf32, strided<[1]>>
  scf.if %c {
    memref.store %f, %v[%i] : memref<32xf32, strided<[1]>>
  }
  %r = memref.load %x[%i] : !m
  return %r : f32
}

// What a loop or a selection may hand on is freed after that.
// CHECK-LABEL: func.func @aliases
// CHECK: %[[A:.*]] = memref.alloc() {bufferization.manual_deallocation}
// CHECK: %[[L:.*]] = scf.for
// CHECK: %[[S:.*]] = arith.select %{{.*}}, %[[L]], %arg1
// CHECK: memref.load %[[S]]
// CHECK-NEXT: memref.dealloc %[[A]]
func.func @aliases(%c: i1, %x: !m, %i: index) -> f32 {
  %c1 = arith.constant 1 : index
  %a = memref.alloc() : !m
  %l = scf.for %k = %c1 to %i step %c1 iter_args(%b = %a) -> !m {
    scf.yield %b : !m
  }
  %s = arith.select %c, %l, %x : !m
  %r = memref.load %s[%i] : !m
  return %r : f32
}

// The caller's, the loop's, an unknown value's, an address.
// CHECK-LABEL: func.func @escapes
// CHECK-NOT: bufferization.manual_deallocation
// CHECK-NOT: memref.dealloc
func.func private @same(%m: !m) -> !m
func.func @escapes(%x: !m, %n: index) -> (!m, !m, !m, index) {
  %c1 = arith.constant 1 : index
  %a = memref.alloc() : !m
  %l = scf.for %k = %c1 to %n step %c1 iter_args(%b = %x) -> !m {
    %new = memref.alloc() : !m
    scf.yield %new : !m
  }
  %d = memref.alloc() : !m
  %e = call @same(%d) : (!m) -> !m
  %g = memref.alloc() : !m
  %p = memref.extract_aligned_pointer_as_index %g : !m -> index
  return %a, %l, %e, %p : !m, !m, !m, index
}

// CHECK-LABEL: func.func @loop
// CHECK: scf.for
// CHECK: %[[A:.*]] = memref.alloc()
// CHECK: memref.copy
// CHECK-NEXT: memref.dealloc %[[A]]
// CHECK-NEXT: {{^ *}$}}
func.func @loop(%x: !m, %n: index) {
  %c1 = arith.constant 1 : index
  scf.for %k = %c1 to %n step %c1 {
    %a = memref.alloc() : !m
    memref.copy %x, %a : !m to !m
  }
  return
}

// What the program frees itself is freed after what reads it, wherever that was
// moved.
// CHECK-LABEL: func.func @freed
// CHECK: %[[A:.*]] = memref.alloc() {bufferization.manual_deallocation}
// CHECK-NOT: memref.dealloc
// CHECK: memref.load %[[A]]
// CHECK-NEXT: memref.dealloc %[[A]] {bufferization.manual_deallocation}
func.func @freed(%x: !m, %i: index) -> f32 {
  %a = memref.alloc() : !m
  memref.copy %x, %a : !m to !m
  memref.dealloc %a : !m
  %r = memref.load %a[%i] : !m
  return %r : f32
}
