// RUN: fp8-opt --allow-unregistered-dialect --split-input-file --verify-diagnostics %s

// expected-error @+1 {{expected tile_m to be a multiple of 128 up to 256, but got 192}}
"test.c1"() {a = #fp8.gemm_config<tile_m = 192, tile_n = 128, stages = 4>} : () -> ()

// -----

// expected-error @+1 {{expected tile_n to be a multiple of 64 up to 256, but got 32}}
"test.c1_swapped"() {a = #fp8.gemm_config<tile_m = 16, tile_n = 32, stages = 4, consumers = 1, swap_ab = true, store = direct>} : () -> ()

// -----

// expected-error @+1 {{expected tile_n to be a multiple of 8 up to 256, but got 100}}
"test.c2"() {a = #fp8.gemm_config<tile_m = 128, tile_n = 100, stages = 4>} : () -> ()

// -----

// expected-error @+1 {{expected stages to be in 2..16, but got 1}}
"test.c3_stages"() {a = #fp8.gemm_config<tile_m = 128, tile_n = 128, stages = 1>} : () -> ()

// -----

// expected-error @+1 {{expected consumers to be in 1..3, but got 4}}
"test.c3_consumers"() {a = #fp8.gemm_config<tile_m = 256, tile_n = 128, stages = 4, consumers = 4>} : () -> ()

// -----

// expected-error @+1 {{expected 2 consumers with ping_pong, but got 1}}
"test.c4_consumers"() {a = #fp8.gemm_config<tile_m = 64, tile_n = 128, stages = 4, consumers = 1, schedule = ping_pong>} : () -> ()

// -----

// expected-error @+1 {{expected neither split_k nor swap_ab with ping_pong}}
"test.c4_split"() {a = #fp8.gemm_config<tile_m = 64, tile_n = 128, stages = 4, schedule = ping_pong, split_k = 2>} : () -> ()

// -----

// expected-error @+1 {{expected store = direct with swap_ab}}
"test.c5"() {a = #fp8.gemm_config<tile_m = 16, tile_n = 64, stages = 4, consumers = 1, swap_ab = true>} : () -> ()

// -----

// expected-error @+1 {{expected cluster to be in 1..2, but got 4}}
"test.c6"() {a = #fp8.gemm_config<tile_m = 128, tile_n = 128, stages = 4, cluster = 4>} : () -> ()

// -----

// expected-error @+1 {{expected no split_k with cluster}}
"test.c6_split"() {a = #fp8.gemm_config<tile_m = 128, tile_n = 128, stages = 4, split_k = 2, cluster = 2>} : () -> ()

// -----

// expected-error @+1 {{expected tile_n to be a multiple of 16 with cluster, but got 8}}
"test.c6_tile_n"() {a = #fp8.gemm_config<tile_m = 128, tile_n = 8, stages = 4, cluster = 2>} : () -> ()

// -----

// expected-error @+1 {{expected tile_m to be a multiple of 16 with cluster, but got 8}}
"test.c6_tile_m"() {a = #fp8.gemm_config<tile_m = 8, tile_n = 64, stages = 4, consumers = 1, swap_ab = true, store = direct, cluster = 2>} : () -> ()

// -----

// expected-error @+1 {{expected 'fp8.gemm_config' to be a #fp8.gemm_config, but got 1 : i64}}
"test.type"() {fp8.gemm_config = 1} : () -> ()
