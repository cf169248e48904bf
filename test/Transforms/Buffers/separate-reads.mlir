// RUN: fp8-opt %s --fp8-separate-reads=max-reads=1 | FileCheck %s
// RUN: fp8-opt %s --fp8-separate-reads | FileCheck %s --check-prefix=FEW
// RUN: fp8-opt %s --fp8-separate-reads=max-reads=1 --one-shot-bufferize="bufferize-function-boundaries function-boundary-type-conversion=identity-layout-map allow-return-allocs-from-loops" | FileCheck %s --check-prefix=BUFFERS

!t = tensor<8x8xf32>

// FEW-NOT: to_tensor
// BUFFERS-NOT: memref.copy
// BUFFERS-NOT: to_tensor

// CHECK-LABEL: func.func @argument
// CHECK-NEXT: %[[M:.*]] = bufferization.to_buffer %arg0 read_only : tensor<8x8xf32> to memref<8x8xf32>
// CHECK: %[[A:.*]] = bufferization.to_tensor %[[M]] restrict
// CHECK-NEXT: linalg.exp ins(%[[A]] :
// CHECK: %[[B:.*]] = bufferization.to_tensor %[[M]] restrict
// CHECK-NEXT: linalg.abs ins(%[[B]] :
func.func @argument(%x: !t) -> (!t, !t) {
  %e = tensor.empty() : !t
  %0 = linalg.exp ins(%x : !t) outs(%e : !t) -> !t
  %f = tensor.empty() : !t
  %1 = linalg.abs ins(%x : !t) outs(%f : !t) -> !t
  return %0, %1 : !t, !t
}

// Also where a loop reads it.
// CHECK-LABEL: func.func @result
// CHECK: %[[Y:.*]] = linalg.exp
// CHECK-NEXT: %[[M:.*]] = bufferization.to_buffer %[[Y]] read_only
// CHECK: scf.for
// CHECK: %[[A:.*]] = bufferization.to_tensor %[[M]] restrict
// CHECK-NEXT: linalg.add ins(%{{.*}}, %[[A]] :
// CHECK: %[[B:.*]] = bufferization.to_tensor %[[M]] restrict
// CHECK-NEXT: linalg.abs ins(%[[B]] :
func.func @result(%x: !t, %n: index) -> (!t, !t) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %e = tensor.empty() : !t
  %y = linalg.exp ins(%x : !t) outs(%e : !t) -> !t
  %r = scf.for %i = %zero to %n step %one iter_args(%s = %x) -> !t {
    %g = tensor.empty() : !t
    %a = linalg.add ins(%s, %y : !t, !t) outs(%g : !t) -> !t
    scf.yield %a : !t
  }
  %f = tensor.empty() : !t
  %1 = linalg.abs ins(%y : !t) outs(%f : !t) -> !t
  return %r, %1 : !t, !t
}

// What somebody writes to, or knows by another name, stays as it is.
// CHECK-LABEL: func.func @written
// CHECK-NOT: to_tensor
func.func @written(%x: !t, %z: !t, %v: !t) -> (!t, !t, !t, tensor<4x8xf32>) {
  %e = tensor.empty() : !t
  %0 = linalg.exp ins(%x : !t) outs(%e : !t) -> !t
  %f = tensor.empty() : !t
  %1 = linalg.abs ins(%x : !t) outs(%f : !t) -> !t
  %2 = linalg.add ins(%0, %1 : !t, !t) outs(%x : !t) -> !t
  %g = tensor.empty() : !t
  %3 = linalg.add ins(%z, %z : !t, !t) outs(%g : !t) -> !t
  %part = tensor.extract_slice %z[0, 0] [4, 8] [1, 1] : !t to tensor<4x8xf32>
  %h = tensor.empty() : !t
  %4 = linalg.add ins(%v, %v : !t, !t) outs(%h : !t) -> !t
  %5 = func.call @callee(%v) : (!t) -> !t
  %i = tensor.empty() : !t
  %6 = linalg.add ins(%4, %5 : !t, !t) outs(%i : !t) -> !t
  return %2, %3, %6, %part : !t, !t, !t, tensor<4x8xf32>
}
func.func private @callee(!t) -> !t
