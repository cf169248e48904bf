// UNSUPPORTED: sanitizers
// REQUIRES: linker
// RUN: rm -rf %t
// RUN: split-file %s %t
// RUN: %python %t/inputs.py %t/in.safetensors
// RUN: toy-compile %t/program.mlir %t/program.so
// RUN: env FP8_CUDA_DRIVER=emulator FP8_EMULATOR_ARCH=80 FP8_EMULATOR_TRACE=%t/trace fp8-run %t/program.so --inputs=%t/in.safetensors | FileCheck %s
// RUN: FileCheck %s --check-prefix=TRACE --input-file=%t/trace

// Compiled, it is a program like any other: fp8-run knows neither the kernel nor
// the GPU.

// CHECK: y: F32 [40, 300]

// TRACE:      cuModuleLoadDataEx
// TRACE:      cuLaunchKernelEx
// TRACE-NEXT: {{^}}  fp8_toy_scale_sm80_rank2_b256 grid 47x1x1 block 256x1x1 cluster 1 smem 0{{$}}
// TRACE:      cuModuleLoadDataEx
// TRACE:      cuLaunchKernelEx
// TRACE-NEXT: {{^}}  generic_0 grid 12x1x1 block 256x1x1 cluster 1 smem 0{{$}}
// TRACE-NOT:  cuLaunchKernelEx

// RUN: not env FP8_CUDA_DRIVER=emulator FP8_EMULATOR_ARCH=80 FP8_EMULATOR_FAIL=cuLaunchKernelEx=2 fp8-run %t/program.so --inputs=%t/in.safetensors 2>&1 | FileCheck %s --check-prefix=FAILS
// FAILS: fp8-run: error: cannot launch kernel 'fp8_toy_scale_sm80_rank2_b256': CUDA_ERROR_OUT_OF_MEMORY

//--- program.mlir
func.func @linear(%x: tensor<40x300xf32> {fp8.name = "x"}, %s: f32 {fp8.name = "s"}) -> (tensor<40x300xf32> {fp8.name = "y"}) {
  %0 = toy.scale %x by %s : tensor<40x300xf32>, f32
  %1 = arith.addf %0, %0 : tensor<40x300xf32>
  return %1 : tensor<40x300xf32>
}

//--- inputs.py
import sys

import numpy as np
from fp8 import tensors

tensors.save(sys.argv[1], {"x": np.ones((40, 300), np.float32), "s": np.float32(3)})
