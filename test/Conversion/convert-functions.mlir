// RUN: fp8-opt %s --fp8-convert-functions --allow-unregistered-dialect | FileCheck %s

// CHECK:       llvm.func @external(i32) -> i32
func.func private @external(i32) -> i32

// The first block is whole again.

// CHECK-LABEL: llvm.func @first
// CHECK-SAME:    %[[X:.+]]: i32
// CHECK-NEXT:    %[[Y:.+]] = llvm.call @external(%[[X]]) : (i32) -> i32
// CHECK-NEXT:    llvm.return %[[Y]]
func.func @first(%x: i32) -> i32 {
  %0 = func.call @external(%x) : (i32) -> i32
  return %0 : i32
}

// Blocks that are branched to stay.

// CHECK-LABEL: llvm.func @blocks
// CHECK-SAME:    %[[C:.+]]: i1, %[[X:.+]]: i32
// CHECK-NEXT:    cf.cond_br %[[C]], ^[[THEN:.+]], ^[[END:[a-z0-9]+]](%[[X]] : i32)
// CHECK-NEXT:  ^[[THEN]]:
// CHECK:         llvm.call @external
// CHECK-NEXT:    cf.br ^[[END]]
// CHECK-NEXT:  ^[[END]](%[[R:.+]]: i32):
// CHECK-NEXT:    llvm.return %[[R]]
func.func @blocks(%c: i1, %x: i32) -> i32 {
  cf.cond_br %c, ^bb1, ^bb2(%x : i32)
^bb1:
  %0 = func.call @external(%x) : (i32) -> i32
  cf.br ^bb2(%0 : i32)
^bb2(%1: i32):
  return %1 : i32
}

// A memref's parts are put together in front of all that uses it.

// CHECK-LABEL: llvm.func @memref
// CHECK:         llvm.insertvalue
// CHECK:         builtin.unrealized_conversion_cast
// CHECK-NEXT:    "test.use"
// CHECK-NOT:     ^bb
// CHECK:         llvm.return
func.func @memref(%x: memref<?xf32>) {
  "test.use"(%x) : (memref<?xf32>) -> ()
  return
}
