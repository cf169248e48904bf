// RUN: fp8-opt %s --fp8-free-buffers --split-input-file --verify-diagnostics

func.func @argument(%x: memref<64xf32>) {
  // expected-error @+1 {{'memref.dealloc' op expected memory of a memref.alloc or func.call of this function, but got another's}}
  memref.dealloc %x : memref<64xf32>
  return
}
