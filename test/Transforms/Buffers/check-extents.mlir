// RUN: fp8-opt %s --fp8-check-extents | FileCheck %s

// What lies in tiles has been checked as a whole.
// CHECK-LABEL: func.func @tiles
// CHECK: cf.assert %{{.*}}, "before"
// CHECK: scf.forall
// CHECK-NOT: cf.assert
// CHECK-NOT: fp8.tiles
// CHECK: return
func.func @tiles(%x: tensor<?xf32>, %e: tensor<?xf32>, %n: index, %fits: i1) -> tensor<?xf32> {
  cf.assert %fits, "before"
  %r = scf.forall (%i) in (%n) shared_outs(%o = %e) -> tensor<?xf32> {
    %t = tensor.extract_slice %x[%i] [8] [1] : tensor<?xf32> to tensor<8xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %t into %o[%i] [8] [1] : tensor<8xf32> into tensor<?xf32>
    }
  } {fp8.tiles}
  return %r : tensor<?xf32>
}

// Another loop says nothing of what it reads.
// CHECK-LABEL: func.func @others
// CHECK: scf.forall
// CHECK: cf.assert
func.func @others(%x: tensor<?xf32>, %e: tensor<?xf32>, %n: index) -> tensor<?xf32> {
  %r = scf.forall (%i) in (%n) shared_outs(%o = %e) -> tensor<?xf32> {
    %t = tensor.extract_slice %x[%i] [8] [1] : tensor<?xf32> to tensor<8xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %t into %o[%i] [8] [1] : tensor<8xf32> into tensor<?xf32>
    }
  }
  return %r : tensor<?xf32>
}

// Verified is checked.
// CHECK-LABEL: func.func @static
// CHECK-NOT: cf.assert
func.func @static(%x: tensor<4x8xf32>, %y: tensor<8x2xf32>, %e: tensor<4x2xf32>) -> tensor<4x2xf32> {
  %r = linalg.matmul ins(%x, %y : tensor<4x8xf32>, tensor<8x2xf32>) outs(%e : tensor<4x2xf32>) -> tensor<4x2xf32>
  return %r : tensor<4x2xf32>
}

// The message has the operation, and its place.
// CHECK-LABEL: func.func @dynamic
// CHECK: cf.assert %{{.*}}, "ERROR: Runtime op verification failed\0A%{{.*}} = linalg.matmul ins(%arg0, %arg1 : tensor<4x?xf32>, tensor<8x2xf32>) outs(%arg2 : tensor<4x2xf32>) -> tensor<4x2xf32>\0A^ dimension #{{.*}} of input/output operand #{{.*}} is incompatible with inferred dimension size\0ALocation: {{.*}}check-extents.mlir
func.func @dynamic(%x: tensor<4x?xf32>, %y: tensor<8x2xf32>, %e: tensor<4x2xf32>) -> tensor<4x2xf32> {
  %r = linalg.matmul ins(%x, %y : tensor<4x?xf32>, tensor<8x2xf32>) outs(%e : tensor<4x2xf32>) -> tensor<4x2xf32>
  return %r : tensor<4x2xf32>
}

// A row that does not exist is no matter of shapes.
// CHECK-LABEL: func.func @rows
// CHECK: linalg.generic
// CHECK: cf.assert {{.*}}out-of-bounds access
// CHECK: tensor.extract
func.func @rows(%table: tensor<16x8xf32>, %ids: tensor<4xi64>, %e: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%ids : tensor<4xi64>) outs(%e : tensor<4x8xf32>) {
  ^bb0(%id: i64, %o: f32):
    %row = arith.index_cast %id : i64 to index
    %j = linalg.index 1 : index
    %v = tensor.extract %table[%row, %j] : tensor<16x8xf32>
    linalg.yield %v : f32
  } -> tensor<4x8xf32>
  return %r : tensor<4x8xf32>
}

// Extents that no tensor has may be more than there is memory for, or than can
// be counted.
// CHECK-LABEL: func.func @allocations
// CHECK-SAME:    %[[N:[a-z0-9]+]]: i64
// CHECK: %[[BYTES:.*]] = arith.constant 64 : i64
// CHECK: %[[LOW:.*]], %[[HIGH:.*]] = arith.mului_extended %[[BYTES]],
// CHECK: cf.assert %{{.*}}, "cannot allocate tensor<?x16xf32>: expected extents of fewer than 2^63 bytes"
// CHECK: tensor.empty
// CHECK-NOT: cannot allocate
// CHECK: return
func.func @allocations(%n: i64, %x: tensor<?xf32>) -> (tensor<?x16xf32>, tensor<?x4xf32>) {
  %c0 = arith.constant 0 : index
  %m = arith.index_cast %n : i64 to index
  %e = tensor.empty(%m) : tensor<?x16xf32>
  %d = tensor.dim %x, %c0 : tensor<?xf32>
  %twice = arith.addi %d, %d : index
  %known = tensor.empty(%twice) : tensor<?x4xf32>
  return %e, %known : tensor<?x16xf32>, tensor<?x4xf32>
}
