// RUN: fp8-opt %s --fp8-set-target=chip=sm_90a --verify-diagnostics
// RUN: not fp8-opt %s --fp8-set-target=chip=sm_70 2>&1 | FileCheck %s --check-prefix=CHIP
// RUN: not fp8-opt %s --fp8-set-target 2>&1 | FileCheck %s --check-prefix=NONE

// CHIP: error: expected chip to be one of sm_90a, sm_100a, sm_89, sm_120a, sm_121a, sm_80, but got 'sm_70'
// NONE: error: expected chip to be one of sm_90a, sm_100a, sm_89, sm_120a, sm_121a, sm_80, but got ''

// expected-error @+1 {{expected 'fp8_gpu.target' to be of chip sm_90a, but got #fp8_gpu.target<chip = "sm_100a",}}
module attributes {fp8_gpu.target = #fp8_gpu.target<
    chip = "sm_100a", compute_capability = 100, features = "+ptx90", multiprocessors = 148,
    shared_bytes = 232448, registers = 65536, mma_rate = 8192, l2_rate = 49, memory_rate = 34>} {
}
