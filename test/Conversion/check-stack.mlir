// RUN: fp8-opt %s --fp8-check-stack --split-input-file | FileCheck %s

// Functions that may call themselves, by whatever road, and no others.

// CHECK: llvm.func @fp8rt_program_check_stack(!llvm.ptr)

// CHECK-LABEL: llvm.func @itself(
// CHECK-SAME: passthrough = ["nounwind", ["disable-tail-calls", "true"], "noinline"]
// CHECK-NEXT: %[[NAME:.*]] = llvm.mlir.addressof @[[ITSELF:.*]] : !llvm.ptr
// CHECK-NEXT: llvm.call @fp8rt_program_check_stack(%[[NAME]])
llvm.func @itself(%c: i1) attributes {passthrough = ["nounwind"]} {
  llvm.cond_br %c, ^bb1, ^bb2
^bb1:
  llvm.call @itself(%c) : (i1) -> ()
  llvm.br ^bb2
^bb2:
  llvm.return
}

// CHECK-LABEL: llvm.func @calls_a_cycle(
// CHECK-NOT: check_stack
llvm.func @calls_a_cycle(%c: i1) {
  llvm.call @itself(%c) : (i1) -> ()
  llvm.call @one(%c) : (i1) -> ()
  llvm.return
}

// CHECK-LABEL: llvm.func @one(
// CHECK: llvm.call @fp8rt_program_check_stack(
llvm.func @one(%c: i1) {
  %0 = llvm.mlir.addressof @other : !llvm.ptr
  llvm.call @loop(%0) : (!llvm.ptr) -> ()
  llvm.call @leaf() : () -> ()
  llvm.return
}

// Called by a loop that it is given to.
// CHECK-LABEL: llvm.func @other(
// CHECK: llvm.call @fp8rt_program_check_stack(
llvm.func @other(%c: i1) {
  llvm.call @one(%c) : (i1) -> ()
  llvm.return
}
llvm.func @loop(!llvm.ptr)

// CHECK-LABEL: llvm.func @leaf(
// CHECK-NOT: check_stack
llvm.func @leaf() {
  llvm.return
}

// CHECK: llvm.mlir.global internal constant @[[ITSELF]]("itself\00")

// -----

// CHECK-NOT: check_stack
llvm.func @caller() {
  llvm.call @callee() : () -> ()
  llvm.return
}
llvm.func @callee() {
  llvm.return
}
