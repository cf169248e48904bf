// RUN: fp8-opt --allow-unregistered-dialect --split-input-file --verify-diagnostics %s

// expected-error @+1 {{expected tile_m to be a multiple of 64 up to 256, but got 96}}
"test.c1"() {a = #fp8_mma.gemm<tile_m = 96, tile_n = 128, stages = 3>} : () -> ()

// -----

// expected-error @+1 {{expected tile_m to be a multiple of 128 up to 256, but got 64}}
"test.c1_warpgroups"() {a = #fp8_mma.gemm<tile_m = 64, tile_n = 128, stages = 3, warpgroups = 2>} : () -> ()

// -----

// expected-error @+1 {{expected tile_n to be a multiple of 64 up to 256, but got 32}}
"test.c1_swapped"() {a = #fp8_mma.gemm<tile_m = 16, tile_n = 32, stages = 3, swap_ab = true, store = direct>} : () -> ()

// -----

// expected-error @+1 {{expected tile_n to be a multiple of 16 up to 256, but got 104}}
"test.c2"() {a = #fp8_mma.gemm<tile_m = 64, tile_n = 104, stages = 3>} : () -> ()

// -----

// expected-error @+1 {{expected tile_m to be a multiple of 16 up to 256, but got 8}}
"test.c2_swapped"() {a = #fp8_mma.gemm<tile_m = 8, tile_n = 64, stages = 3, swap_ab = true, store = direct>} : () -> ()

// -----

// expected-error @+1 {{expected stages to be in 2..8, but got 9}}
"test.c3_stages"() {a = #fp8_mma.gemm<tile_m = 64, tile_n = 64, stages = 9>} : () -> ()

// -----

// expected-error @+1 {{expected warpgroups to be in 1..2, but got 3}}
"test.c3_warpgroups"() {a = #fp8_mma.gemm<tile_m = 192, tile_n = 64, stages = 3, warpgroups = 3>} : () -> ()

// -----

// expected-error @+1 {{expected store = direct with swap_ab, but got pairs}}
"test.c4"() {a = #fp8_mma.gemm<tile_m = 16, tile_n = 64, stages = 3, swap_ab = true>} : () -> ()

// -----

// expected-error @+1 {{expected up to 128 sums of a thread, but got 256}}
"test.c5"() {a = #fp8_mma.gemm<tile_m = 128, tile_n = 256, stages = 2>} : () -> ()

// -----

// expected-error @+1 {{expected tile_q to be 64 or 128, but got 192}}
"test.attention_c1"() {a = #fp8_mma.attention<tile_q = 192, tile_k = 64, stages = 2>} : () -> ()

// -----

// expected-error @+1 {{expected tile_k to be a multiple of 16, but got 24}}
"test.attention_c2"() {a = #fp8_mma.attention<tile_q = 128, tile_k = 24, stages = 2>} : () -> ()

// -----

// expected-error @+1 {{expected tile_k to be in 16..256, but got 272}}
"test.attention_c2_range"() {a = #fp8_mma.attention<tile_q = 128, tile_k = 272, stages = 2>} : () -> ()

// -----

// expected-error @+1 {{expected stages to be in 2..8, but got 1}}
"test.attention_c3"() {a = #fp8_mma.attention<tile_q = 128, tile_k = 64, stages = 1>} : () -> ()
