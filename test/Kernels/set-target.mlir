// RUN: fp8-opt %s --fp8-set-target=chip=sm_90a --split-input-file | FileCheck %s

// The GPU that is meant where nobody says otherwise.

// CHECK: #target = #fp8_gpu.target<chip = "sm_90a", compute_capability = 90, features = "+ptx90", multiprocessors = 132, shared_bytes = 232448, registers = 65536, mma_rate = {{[0-9]+}}, l2_rate = {{[0-9]+}}, memory_rate = {{[0-9]+}}, clock = {{[0-9]+}}, memory_peak = {{[0-9]+}}, launch_time = {{[0-9]+}}>
// CHECK: module attributes {fp8_gpu.target = #target}
module {
}

// -----

// A smaller one of the same chip keeps its numbers.

// CHECK: #target = #fp8_gpu.target<chip = "sm_90a", compute_capability = 90, features = "+ptx90", multiprocessors = 78, shared_bytes = 232448, registers = 65536, mma_rate = 4096, l2_rate = 40, memory_rate = 30>
// CHECK: module attributes {fp8_gpu.target = #target}
module attributes {fp8_gpu.target = #fp8_gpu.target<
    chip = "sm_90a", compute_capability = 90, features = "+ptx90", multiprocessors = 78,
    shared_bytes = 232448, registers = 65536, mma_rate = 4096, l2_rate = 40, memory_rate = 30>} {
}
