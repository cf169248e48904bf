// RUN: fp8-opt %s --fp8-convert-gpu-to-runtime --split-input-file --verify-diagnostics

func.func @store(%x: memref<8xf32>, %value: f32, %context: !llvm.ptr) {
  %c0 = arith.constant 0 : index
  // expected-error @+1 {{is not supported on the host of a GPU}}
  memref.store %value, %x[%c0] : memref<8xf32>
  return
}

// -----

// A kernel that is not in the program, and one whose launch is another.

#launch = #fp8_gpu.launch<
  arguments = [#fp8_gpu.argument<name = "y", element = f32, rank = 1, access = write, alignment = 4>],
  extents = [], params = [], grid = affine_map<() -> (1)>, block = 32>
func.func @absent(%y: memref<8xf32>, %context: !llvm.ptr) {
  // expected-error @+2 {{expected a kernel of the program, but got @kernels::@k}}
  // expected-error @+1 {{failed to legalize}}
  fp8_gpu.launch @kernels::@k #launch outs(%y : memref<8xf32>)
  return
}

// -----

#launch = #fp8_gpu.launch<
  arguments = [#fp8_gpu.argument<name = "y", element = f32, rank = 1, access = write, alignment = 4>],
  extents = [], params = [], grid = affine_map<() -> (1)>, block = 32>
#other = #fp8_gpu.launch<
  arguments = [#fp8_gpu.argument<name = "y", element = f32, rank = 1, access = write, alignment = 4>],
  extents = [], params = [], grid = affine_map<() -> (2)>, block = 32>
module attributes {gpu.container_module} {
  gpu.binary @kernels [#gpu.object<#nvvm.target, kernels = <[
    #gpu.kernel_metadata<"k", !llvm.func<void (ptr)>, metadata = {fp8_gpu.launch = #other}>]>, assembly = "PTX">]
  func.func @another(%y: memref<8xf32>, %context: !llvm.ptr) {
    // expected-error @+2 {{expected the launch of @kernels::@k, but got another}}
    // expected-error @+1 {{failed to legalize}}
    fp8_gpu.launch @kernels::@k #launch outs(%y : memref<8xf32>)
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

// -----

func.func @offset(%amaxes: memref<2xf32, strided<[1], offset: 3>>, %context: !llvm.ptr) {
  // expected-error @+2 {{expected amaxes that lie together, but got 'memref<2xf32, strided<[1], offset: 3>>'}}
  // expected-error @+1 {{failed to legalize}}
  fp8.all_reduce_amax %amaxes group = "tp" : memref<2xf32, strided<[1], offset: 3>>
  return
}
