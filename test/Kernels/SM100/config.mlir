// RUN: fp8-opt --allow-unregistered-dialect %s | FileCheck %s

// Defaults are not printed.
// CHECK: "test.op"() {fp8_gpu.config = #fp8_sm100.gemm<tile_m = 128, tile_n = 256, stages = 4>} : () -> ()
"test.op"() {fp8_gpu.config = #fp8_sm100.gemm<tile_m = 128, tile_n = 256, stages = 4, group = 16, split_k = 1, swap_ab = false, store = tma, staging = 2, epilogue_warpgroups = 1, cta_group = 1>} : () -> ()

// CHECK: #fp8_sm100.gemm<tile_m = 128, tile_n = 96, stages = 6, group = 4, store = direct>
"test.op"() {fp8_gpu.config = #fp8_sm100.gemm<tile_m = 128, tile_n = 96, stages = 6, group = 4, store = direct>} : () -> ()

// CHECK: #fp8_sm100.gemm<tile_m = 16, tile_n = 128, stages = 12, group = 1, split_k = 4, swap_ab = true, store = direct>
"test.op"() {fp8_gpu.config = #fp8_sm100.gemm<tile_m = 16, tile_n = 128, stages = 12, group = 1, split_k = 4, swap_ab = true, store = direct>} : () -> ()

// CHECK: #fp8_sm100.gemm<tile_m = 128, tile_n = 128, stages = 4, staging = 1, epilogue_warpgroups = 2>
"test.op"() {fp8_gpu.config = #fp8_sm100.gemm<tile_m = 128, tile_n = 128, stages = 4, staging = 1, epilogue_warpgroups = 2>} : () -> ()

// CHECK: #fp8_sm100.gemm<tile_m = 256, tile_n = 224, stages = 6, cta_group = 2>
"test.op"() {fp8_gpu.config = #fp8_sm100.gemm<tile_m = 256, tile_n = 224, stages = 6, cta_group = 2>} : () -> ()
