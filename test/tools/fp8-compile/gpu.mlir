// RUN: rm -rf %t && mkdir %t
// RUN: fp8-compile %s --kernel-format=ptx --target=sm_90a --recipe=current -o %t/gpu.so
// RUN: %c_compiler -std=c11 -Wall -Wextra -pedantic -Werror -I%t -I%fp8_source/include %S/Inputs/gpu.c %t/gpu.so -L%fp8_build/lib -lfp8rt -Wl,-rpath,%fp8_build/lib -Wl,-rpath,%t -o %t/gpu
// UNSUPPORTED: sanitizers

// Without a driver there is no context, and so no call.

// RUN: env FP8_CUDA_DRIVER=%t-nothing %t/gpu | FileCheck %s --check-prefix=NONE
// NONE: context: 11: expected a CUDA driver, but got none
// NONE-NEXT: call: 1: expected a context for 'linear', which runs on a GPU, but got null

// RUN: env FP8_CUDA_DRIVER=emulator FP8_EMULATOR_TRACE=%t/trace %t/gpu | FileCheck %s
// CHECK: call: 0: [32, 64]
// CHECK-NEXT: call: 0: [32, 64]
// CHECK-NEXT: host: 15: expected argument 'x' of 'linear' on device 0, but got one in host memory
// CHECK-NEXT: misaligned: 1: expected argument 'x' of 'linear' to be aligned to 16 bytes

// The trace: the first call loads its kernels, each before it launches it, the
// second launches the same ones in the same order, and neither waits. Amax and cast of both
// operands, then their product.

// RUN: FileCheck %s --check-prefix=TRACE --input-file=%t/trace
// TRACE: first call
// TRACE-NOT: cuStreamSynchronize
// TRACE: cuModuleLoadDataEx
// TRACE-NOT: cuModuleLoadDataEx
// TRACE: cuLaunchKernelEx
// TRACE-NEXT: [[FIRST:[a-z_0-9]+ grid .*]]
// TRACE-NOT: cuStreamSynchronize
// TRACE: cuModuleLoadDataEx
// TRACE-NOT: cuStreamSynchronize
// TRACE: {{^}}  [[MATMUL:fp8_matmul_sm90a_.* grid .*]]
// TRACE-NOT: cuStreamSynchronize
// TRACE: second call
// TRACE-NOT: cuModuleLoadDataEx
// TRACE-NOT: cuStreamSynchronize
// TRACE: {{^}}  [[FIRST]]
// TRACE-NOT: cuModuleLoadDataEx
// TRACE-NOT: cuStreamSynchronize
// TRACE: {{^}}  [[MATMUL]]
// TRACE-NOT: cuModuleLoadDataEx
// TRACE-NOT: cuStreamSynchronize
// TRACE: end of calls

// A launch that fails leaves no results, and no memory.

// RUN: env FP8_CUDA_DRIVER=emulator FP8_EMULATOR_FAIL=cuLaunchKernelEx=701 %t/gpu | FileCheck %s --check-prefix=FAILS
// RUN: env FP8_CUDA_DRIVER=emulator FP8_EMULATOR_ARCH=80 %t/gpu | FileCheck %s --check-prefix=ARCH
// FAILS: call: 17: cannot launch kernel '{{.*}}': CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES
// ARCH: call: 13: expected code for device 0 (Emulated A100, sm_80), but got {{.*}} for sm_90

func.func @linear(%x: tensor<32x256xbf16> {fp8.name = "x"}, %w: tensor<256x64xbf16> {fp8.name = "w"})
    -> (tensor<32x64xf32> {fp8.name = "y"}) {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<32x64xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<32x64xf32>) -> tensor<32x64xf32>
  %y = linalg.matmul ins(%x, %w : tensor<32x256xbf16>, tensor<256x64xbf16>)
                     outs(%zeros : tensor<32x64xf32>) -> tensor<32x64xf32>
  return %y : tensor<32x64xf32>
}
