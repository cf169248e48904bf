// RUN: split-file %s %t
// RUN: %python %t/inputs.py %t

// Kernels are not run: what a program writes to its argument is the
// CPU's alone.

// RUN: env FP8_CUDA_DRIVER=emulator FP8_EMULATOR_KERNELS=skip fp8-run %t/add.mlir --target=sm_90a --inputs=%t/large.safetensors --compare=cpu | FileCheck %s
// RUN: not env FP8_CUDA_DRIVER=emulator FP8_EMULATOR_KERNELS=skip fp8-run %t/add.mlir --target=sm_90a --inputs=%t/small.safetensors --compare=cpu 2>&1 | FileCheck %s --check-prefix=SMALL
// RUN: env FP8_CUDA_DRIVER=emulator FP8_EMULATOR_KERNELS=skip fp8-run %t/add.mlir --target=sm_90a --inputs=%t/small.safetensors --compare=cpu --tolerance=0.4 | FileCheck %s --check-prefix=TOLERATED
// RUN: not env FP8_CUDA_DRIVER=emulator FP8_EMULATOR_KERNELS=skip fp8-run %t/fill.mlir --target=sm_90a --inputs=%t/large.safetensors --compare=cpu --tolerance=1000 2>&1 | FileCheck %s --check-prefix=NAN

// A difference is a share of the largest magnitude; NaN is as good as NaN, and
// not as good as a number.

// CHECK: m: largest difference 0.001 of 2.001 (0.0005), 2 of 3 elements differ
// SMALL-DAG: m: largest difference 0.001 of 0.003 (0.333), 3 of 3 elements differ
// SMALL-DAG: fp8-run: error: expected results within 0.010000 of those of the CPU, but not so for 'm'
// TOLERATED: m: largest difference 0.001 of 0.003 (0.333), 3 of 3 elements differ
// NAN-DAG: m: largest difference inf of 1 (inf), 2 of 3 elements differ
// NAN-DAG: fp8-run: error: expected results within 1000.000000 of those of the CPU, but not so for 'm'

//--- add.mlir
func.func @add(%m: memref<3xf32> {fp8.name = "m"}) {
  %c = arith.constant 0.001 : f32
  linalg.generic {indexing_maps = [affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      outs(%m : memref<3xf32>) {
  ^bb0(%o: f32):
    %0 = arith.addf %o, %c : f32
    linalg.yield %0 : f32
  }
  return
}

//--- fill.mlir
func.func @fill(%m: memref<3xf32> {fp8.name = "m"}) {
  %c = arith.constant 1.0 : f32
  linalg.fill ins(%c : f32) outs(%m : memref<3xf32>)
  return
}

//--- inputs.py
import sys

import numpy as np
from fp8 import tensors

for name, values in {"large": [1, 2, np.nan], "small": [1e-3, 2e-3, 0]}.items():
    tensors.save(f"{sys.argv[1]}/{name}.safetensors", {"m": np.array(values, np.float32)})
