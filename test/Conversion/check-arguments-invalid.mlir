// RUN: fp8-opt %s --fp8-check-arguments --verify-diagnostics

// expected-error @+1 {{expected 'fp8rt_context_check_memory' to be the runtime's function, '!llvm.func<void (ptr, ptr, i64, ptr)>'}}
memref.global "private" @fp8rt_context_check_memory : memref<1xf32>
func.func @memref(%x: memref<4xf32>, %context: !llvm.ptr) {
  return
}
