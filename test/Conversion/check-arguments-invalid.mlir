// RUN: fp8-opt %s --fp8-check-arguments --verify-diagnostics

// expected-error @+1 {{expected 'fp8rt_context_check_memory' to be the runtime's function, '!llvm.func<void (ptr, ptr, i64, ptr)>'}}
memref.global "private" @fp8rt_context_check_memory : memref<1xf32>
func.func @memref(%x: memref<4xf32>, %s: f32, %context: !llvm.ptr) {
  linalg.fill ins(%s : f32) outs(%x : memref<4xf32>)
  return
}
