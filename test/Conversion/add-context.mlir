// RUN: fp8-opt %s --fp8-add-context | FileCheck %s

// CHECK: func.func private @external(f32)
func.func private @external(f32)

// CHECK: func.func private @inner(%{{.*}}: memref<4xf32>, %{{.*}}: !llvm.ptr)
func.func private @inner(%x: memref<4xf32>) {
  return
}

// CHECK: func.func @outer(%[[X:.+]]: memref<4xf32>, %[[S:.+]]: f32, %[[CONTEXT:.+]]: !llvm.ptr)
// CHECK: call @inner(%[[X]], %[[CONTEXT]])
// CHECK: call @external(%[[S]]) : (f32) -> ()
func.func @outer(%x: memref<4xf32>, %s: f32) {
  call @inner(%x) : (memref<4xf32>) -> ()
  call @external(%s) : (f32) -> ()
  return
}
