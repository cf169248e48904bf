// RUN: fp8-opt %s --generate-runtime-verification --fp8-drop-tile-checks | FileCheck %s

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
