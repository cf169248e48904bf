// REQUIRES: linker
// UNSUPPORTED: sanitizers
// RUN: %python %fp8_source/test/Integration/CUDA/Inputs/tensors.py %t.in x=bf16:32x256 w=bf16:256x64/16 bias=bf16:64
// RUN: fp8-run %fp8_source/examples/linear.mlir --target=sm_90a --recipe=block --inputs=%t.in --check=all --compare=cpu | FileCheck %s
// RUN: not fp8-run %fp8_source/examples/linear.mlir --target=sm_90a --recipe=block --inputs=%t.in --check=races,luck 2>&1 | FileCheck %s --check-prefix=UNKNOWN

// CHECK: y: largest difference
// UNKNOWN: expected FP8_EMULATOR_CHECK to be a list of races, proxies, uninitialized, registers, launches, global, unwritten, sums, all, but got 'races,luck'
