// RUN: fp8-opt --allow-unregistered-dialect --split-input-file --verify-diagnostics %s

// expected-error @+1 {{expected tile_m to be 128, but got 256}}
"test.c1"() {a = #fp8_sm100.gemm<tile_m = 256, tile_n = 128, stages = 4>} : () -> ()

// -----

// expected-error @+1 {{expected tile_n to be 128, but got 64}}
"test.c1_swapped"() {a = #fp8_sm100.gemm<tile_m = 16, tile_n = 64, stages = 4, swap_ab = true, store = direct>} : () -> ()

// -----

// expected-error @+1 {{expected tile_n to be a multiple of 16 up to 256, but got 104}}
"test.c2"() {a = #fp8_sm100.gemm<tile_m = 128, tile_n = 104, stages = 4>} : () -> ()

// -----

// expected-error @+1 {{expected tile_m to be a multiple of 16 up to 256, but got 8}}
"test.c2_swapped"() {a = #fp8_sm100.gemm<tile_m = 8, tile_n = 128, stages = 4, swap_ab = true, store = direct>} : () -> ()

// -----

// expected-error @+1 {{expected stages to be in 2..16, but got 17}}
"test.c3_stages"() {a = #fp8_sm100.gemm<tile_m = 128, tile_n = 128, stages = 17>} : () -> ()

// -----

// expected-error @+1 {{expected epilogue_warpgroups to be in 1..2, but got 3}}
"test.c3_epilogue_warpgroups"() {a = #fp8_sm100.gemm<tile_m = 128, tile_n = 128, stages = 4, epilogue_warpgroups = 3>} : () -> ()

// -----

// expected-error @+1 {{expected store = direct with swap_ab, but got tma}}
"test.c4"() {a = #fp8_sm100.gemm<tile_m = 16, tile_n = 128, stages = 4, swap_ab = true>} : () -> ()

// -----

// expected-error @+1 {{expected epilogue_warpgroups and cta_group to be 1 and tile_n to be at most 64 with split_k, but got 1, 1 and 128}}
"test.c5"() {a = #fp8_sm100.gemm<tile_m = 128, tile_n = 128, stages = 4, split_k = 2>} : () -> ()

// -----

// expected-error @+1 {{expected tile_m to be 256, but got 128}}
"test.c1_cta_group"() {a = #fp8_sm100.gemm<tile_m = 128, tile_n = 128, stages = 4, cta_group = 2>} : () -> ()

// -----

// expected-error @+1 {{expected tile_n to be a multiple of 32 up to 256, but got 112}}
"test.c2_cta_group"() {a = #fp8_sm100.gemm<tile_m = 256, tile_n = 112, stages = 4, cta_group = 2>} : () -> ()
