// RUN: not fp8-opt %s --fp8-pipeline="target=sm_70" 2>&1 | FileCheck %s --check-prefix=WITHOUT
// RUN: not toy-opt %s --fp8-pipeline="target=sm_70" 2>&1 | FileCheck %s --check-prefix=PIPELINE
// RUN: not toy-opt %s --fp8-set-target=chip=sm_70 2>&1 | FileCheck %s --check-prefix=CHIP
// RUN: not toy-opt %s --fp8-select-kernels 2>&1 | FileCheck %s --check-prefix=TARGET
// RUN: not toy-opt %s --fp8-set-target=chip=sm_80 2>&1 | FileCheck %s --check-prefix=OTHER

// The chips that messages name are those that are registered, in that order.

// WITHOUT:  error: expected target to be one of cpu, sm_90a, sm_100a, sm_89, sm_120a, sm_121a, sm_80, but got 'sm_70'
// PIPELINE: error: expected target to be one of cpu, sm_80, sm_90a, sm_100a, sm_89, sm_120a, sm_121a, but got 'sm_70'
// CHIP:     error: expected chip to be one of sm_80, sm_90a, sm_100a, sm_89, sm_120a, sm_121a, but got 'sm_70'
// TARGET:   error: expected 'fp8_gpu.target' to be of one of the chips sm_80, sm_90a, sm_100a, sm_89, sm_120a, sm_121a, but got #fp8_gpu.target<chip = "sm_70",
// OTHER:    error: expected 'fp8_gpu.target' to be of chip sm_80, but got #fp8_gpu.target<chip = "sm_70",
module attributes {fp8_gpu.target = #fp8_gpu.target<
    chip = "sm_70", compute_capability = 70, features = "", multiprocessors = 1,
    shared_bytes = 1, registers = 1, mma_rate = 1, l2_rate = 1, memory_rate = 1>} {
  func.func @matmul(%a: tensor<64x64xbf16>) -> tensor<64x64xf32> {
    %0 = fp8.matmul %a, %a accumulate = fast : tensor<64x64xbf16>, tensor<64x64xbf16> -> tensor<64x64xf32>
    return %0 : tensor<64x64xf32>
  }
}
