// RUN: fp8-opt %s --fp8-convert-gpu-to-runtime --split-input-file --verify-diagnostics

func.func @store(%x: memref<8xf32>, %value: f32, %context: !llvm.ptr) {
  %c0 = arith.constant 0 : index
  // expected-error @+1 {{is not supported on the host of a GPU}}
  memref.store %value, %x[%c0] : memref<8xf32>
  return
}

// -----

module attributes {gpu.container_module} {
  gpu.binary @kernels [#gpu.object<#nvvm.target, kernels = <[
    #gpu.kernel_metadata<"k", !llvm.func<void (ptr)>, metadata = {params = ["tea.ptr"]}>]>, assembly = "PTX">]
  func.func @unknown(%a: memref<32x128xf8E4M3FN>, %inv: memref<1x1xf32>,
                     %b: memref<64x128xf8E4M3FN>, %d: memref<32x64xbf16>, %context: !llvm.ptr) {
    // expected-error @+2 {{expected a parameter of docs/Kernels.md, but the kernel wants 'tea.ptr'}}
    // expected-error @+1 {{failed to legalize}}
    fp8.launch_matmul @kernels::@k a(%a, %inv : memref<32x128xf8E4M3FN>, memref<1x1xf32>)
        b(%b, %inv : memref<64x128xf8E4M3FN>, memref<1x1xf32>)
        outs(%d : memref<32x64xbf16>)
    return
  }
}

// -----

module attributes {gpu.container_module} {
  gpu.binary @kernels [#gpu.object<#nvvm.target, kernels = <[
    #gpu.kernel_metadata<"k", !llvm.func<void (ptr)>, metadata = {params = ["m"]}>]>, assembly = "PTX">]
  func.func @strided(%a: memref<32x128xf8E4M3FN, strided<[256, 2]>>, %inv: memref<1x1xf32>,
                     %b: memref<64x128xf8E4M3FN>, %d: memref<32x64xbf16>, %context: !llvm.ptr) {
    // expected-error @+2 {{expected rows whose elements lie together, but got 'memref<32x128xf8E4M3FN, strided<[256, 2]>>'}}
    // expected-error @+1 {{failed to legalize}}
    fp8.launch_matmul @kernels::@k a(%a, %inv : memref<32x128xf8E4M3FN, strided<[256, 2]>>, memref<1x1xf32>)
        b(%b, %inv : memref<64x128xf8E4M3FN>, memref<1x1xf32>)
        outs(%d : memref<32x64xbf16>)
    return
  }
}

// -----

// A program's own functions and the runtime's share their names.
// expected-error @+1 {{expected 'fp8rt_context_alloc' to be the runtime's function, '!llvm.func<ptr (ptr, i64, i32)>'}}
func.func private @fp8rt_context_alloc(%x: f32) -> f32 {
  return %x : f32
}

// -----

// expected-error @+1 {{expected 'fp8rt_context_free' to be the runtime's function, '!llvm.func<void (ptr, ptr)>'}}
llvm.func @fp8rt_context_free(!llvm.ptr)

// -----

// Those that it does not call are nobody's concern.
llvm.func @fp8rt_state_update(!llvm.ptr)
