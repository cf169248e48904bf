// RUN: rm -rf %t && mkdir %t
// RUN: fp8-compile %s --kernel-format=ptx --target=sm_90a --recipe=delayed,amax_history_len=2 -o %t/scaled.so
// RUN: FileCheck %s --check-prefix=HEADER --input-file=%t/scaled.h
// RUN: %c_compiler -std=c11 -Wall -Wextra -pedantic -Werror -I%t -I%fp8_source/include %S/Inputs/gpu_state.c %t/scaled.so -L%fp8_build/lib -lfp8rt -Wl,-rpath,%fp8_build/lib -Wl,-rpath,%t -o %t/state
// RUN: env FP8_CUDA_DRIVER=emulator FP8_EMULATOR_TRACE=%t/trace %t/state | FileCheck %s
// RUN: FileCheck %s --check-prefix=TRACE --input-file=%t/trace
// UNSUPPORTED: sanitizers

// HEADER: fp8/Runtime/DeviceState.h has the rest.
// HEADER: Ends a step: the scales become those of the next. Work in the stream, as calls.
// HEADER-NEXT: fp8rt_status scaled_update_state(fp8rt_state state, fp8rt_context *context);
// HEADER: fp8rt_state state,
// HEADER-NEXT: fp8rt_context *context);

// CHECK: step 0: 0, 0
// CHECK-NEXT: step 1: 0, 0
// CHECK-NEXT: info: 19, 0

// The first call computes twice, by the scales of its own tensors, which it waits
// for. From then on the state stays on the device and nothing waits: a step and its
// update, which is one kernel, are work in the stream.

// TRACE: first call
// TRACE: cuMemcpyAsync
// TRACE: cuLaunchKernelEx
// TRACE: cuStreamSynchronize
// TRACE: cuMemcpyAsync
// TRACE: cuLaunchKernelEx
// TRACE: cuStreamSynchronize
// TRACE: first update
// TRACE-NOT: {{cuMemcpyAsync|cuMemsetD8Async|cuStreamSynchronize}}
// TRACE: cuLaunchKernelEx
// TRACE-NOT: {{cuMemcpyAsync|cuMemsetD8Async|cuStreamSynchronize|cuLaunchKernelEx}}
// TRACE: second call
// TRACE-NOT: {{cuMemcpyAsync|cuStreamSynchronize}}
// TRACE: cuLaunchKernelEx
// TRACE: second update
// TRACE-NOT: {{cuMemcpyAsync|cuMemsetD8Async|cuStreamSynchronize}}
// TRACE: cuLaunchKernelEx
// TRACE-NOT: {{cuMemcpyAsync|cuMemsetD8Async|cuStreamSynchronize|cuLaunchKernelEx}}
// TRACE: download
// TRACE: cuMemcpyAsync
// TRACE: cuStreamSynchronize

func.func @main(%x: tensor<16x32xf32> {fp8.name = "x"}, %w: tensor<32x16xf32> {fp8.name = "w", fp8.weight})
    -> (tensor<16x16xf32> {fp8.name = "y"}) {
  %zero = arith.constant dense<0.0> : tensor<16x16xf32>
  %y = linalg.matmul {fp8.name = "l"} ins(%x, %w : tensor<16x32xf32>, tensor<32x16xf32>)
                     outs(%zero : tensor<16x16xf32>) -> tensor<16x16xf32>
  return %y : tensor<16x16xf32>
}
