// RUN: split-file %s %t
// RUN: %python %t/inputs.py %t/in.safetensors

// Without a driver the program compiles, and running says what is missing.

// RUN: not env FP8_CUDA_DRIVER=%t-nothing fp8-run %t/twice.mlir --target=sm_90a --inputs=%t/in.safetensors 2>&1 | FileCheck %s --check-prefix=NONE
// NONE: fp8-run: error: expected a CUDA driver, but got none

// An argument which is returned comes back; where kernels are not run, what they
// would have computed does not.

// RUN: env FP8_CUDA_DRIVER=emulator fp8-run %t/same.mlir --target=sm_90a --inputs=%t/in.safetensors --compare=cpu | FileCheck %s --check-prefix=SAME
// SAME: y: F32 [2, 3] min 1 max 6 values 1 2 3 4 ...
// SAME: y: largest difference 0 of 6 (0), 0 of 6 elements differ

// RUN: not env FP8_CUDA_DRIVER=emulator FP8_EMULATOR_KERNELS=skip fp8-run %t/twice.mlir --target=sm_90a --inputs=%t/in.safetensors --compare=cpu 2>&1 | FileCheck %s --check-prefix=DIFFERENT
// DIFFERENT: fp8-run: error: expected results within 0.010000 of those of the CPU, but not so for 'y'

// An old GPU, and one without memory, are errors of the program's run.

// RUN: not env FP8_CUDA_DRIVER=emulator FP8_EMULATOR_ARCH=80 fp8-run %t/twice.mlir --target=sm_90a --inputs=%t/in.safetensors 2>&1 | FileCheck %s --check-prefix=ARCH
// ARCH: fp8-run: error: expected code for device 0 (Emulated A100, sm_80), but got {{.*}} for sm_90
// RUN: not env FP8_CUDA_DRIVER=emulator FP8_EMULATOR_FAIL=cuLaunchKernelEx=2 fp8-run %t/twice.mlir --target=sm_90a --inputs=%t/in.safetensors 2>&1 | FileCheck %s --check-prefix=MEMORY
// MEMORY: fp8-run: error: cannot launch kernel 'fp8_fusion_sm90a_{{.+}}': CUDA_ERROR_OUT_OF_MEMORY

// RUN: not fp8-run %t/same.mlir --compare=abacus 2>&1 | FileCheck %s --check-prefix=TARGET
// TARGET: fp8-run: error: expected cpu after '--compare=', but got 'abacus'
// RUN: not fp8-run %t/same.mlir --compare=cpu --tolerance=some 2>&1 | FileCheck %s --check-prefix=TOLERANCE
// TOLERANCE: fp8-run: error: expected a number after '--tolerance=', but got 'some'

//--- same.mlir
func.func @same(%x: tensor<2x3xf32> {fp8.name = "x"}) -> (tensor<2x3xf32> {fp8.name = "y"}) {
  return %x : tensor<2x3xf32>
}

//--- twice.mlir
func.func @twice(%x: tensor<2x3xf32> {fp8.name = "x"}) -> (tensor<2x3xf32> {fp8.name = "y"}) {
  %0 = arith.addf %x, %x : tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}

//--- inputs.py
import sys

import numpy as np
from fp8 import tensors

tensors.save(sys.argv[1], {"x": np.arange(1, 7, dtype=np.float32).reshape(2, 3)})
