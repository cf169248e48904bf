// RUN: fp8-opt --allow-unregistered-dialect --split-input-file --verify-diagnostics %s

// expected-error @+1 {{expected tile_m to be a multiple of 128 up to 256, but got 192}}
"test.c1"() {a = #fp8_sm90.gemm<tile_m = 192, tile_n = 128, stages = 4>} : () -> ()

// -----

// expected-error @+1 {{expected tile_n to be a multiple of 64 up to 256, but got 32}}
"test.c1_swapped"() {a = #fp8_sm90.gemm<tile_m = 16, tile_n = 32, stages = 4, consumers = 1, swap_ab = true, store = direct>} : () -> ()

// -----

// expected-error @+1 {{expected tile_n to be a multiple of 8 up to 256, but got 100}}
"test.c2"() {a = #fp8_sm90.gemm<tile_m = 128, tile_n = 100, stages = 4>} : () -> ()

// -----

// expected-error @+1 {{expected stages to be in 2..32, but got 1}}
"test.c3_stages"() {a = #fp8_sm90.gemm<tile_m = 128, tile_n = 128, stages = 1>} : () -> ()

// -----

// expected-error @+1 {{expected consumers to be in 1..3, but got 4}}
"test.c3_consumers"() {a = #fp8_sm90.gemm<tile_m = 256, tile_n = 128, stages = 4, consumers = 4>} : () -> ()

// -----

// expected-error @+1 {{expected 2 consumers with ping_pong, but got 1}}
"test.c4_consumers"() {a = #fp8_sm90.gemm<tile_m = 64, tile_n = 128, stages = 4, consumers = 1, schedule = ping_pong>} : () -> ()

// -----

// expected-error @+1 {{expected neither split_k nor swap_ab with ping_pong, but got split_k}}
"test.c4_split"() {a = #fp8_sm90.gemm<tile_m = 64, tile_n = 128, stages = 4, schedule = ping_pong, split_k = 2>} : () -> ()

// -----

// expected-error @+1 {{expected cluster_m and cluster_n to be 1, 2 or 4 and their product to be at most 8, but got 3 and 1}}
"test.c6_cluster_m"() {a = #fp8_sm90.gemm<tile_m = 128, tile_n = 128, stages = 4, cluster_m = 3>} : () -> ()

// -----

// expected-error @+1 {{expected cluster_m and cluster_n to be 1, 2 or 4 and their product to be at most 8, but got 1 and 3}}
"test.c6_cluster_n"() {a = #fp8_sm90.gemm<tile_m = 128, tile_n = 128, stages = 4, cluster_n = 3>} : () -> ()

// -----

// expected-error @+1 {{expected cluster_m and cluster_n to be 1, 2 or 4 and their product to be at most 8, but got 4 and 4}}
"test.c6_most"() {a = #fp8_sm90.gemm<tile_m = 128, tile_n = 128, stages = 4, cluster_m = 4, cluster_n = 4>} : () -> ()

// -----

// expected-error @+1 {{expected cluster_m to be in 1..4, but got 8}}
"test.c3_cluster_m"() {a = #fp8_sm90.gemm<tile_m = 128, tile_n = 128, stages = 4, cluster_m = 8>} : () -> ()

// -----

// expected-error @+1 {{expected cluster_n to be in 1..4, but got 0}}
"test.c3_cluster_n"() {a = #fp8_sm90.gemm<tile_m = 128, tile_n = 128, stages = 4, cluster_n = 0>} : () -> ()

// -----

// expected-error @+1 {{expected tile_m to be a multiple of 128 up to 256, but got 0}}
"test.c1_least"() {a = #fp8_sm90.gemm<tile_m = 0, tile_n = 128, stages = 4>} : () -> ()

// -----

// expected-error @+1 {{expected tile_n to be a multiple of 8 up to 256, but got 0}}
"test.c2_least"() {a = #fp8_sm90.gemm<tile_m = 128, tile_n = 0, stages = 4>} : () -> ()

// -----

// expected-error @+1 {{expected tile_n to be a multiple of 8 up to 256, but got 264}}
"test.c2_most"() {a = #fp8_sm90.gemm<tile_m = 128, tile_n = 264, stages = 4>} : () -> ()

// -----

// expected-error @+1 {{expected stages to be in 2..32, but got 33}}
"test.c3_stages_most"() {a = #fp8_sm90.gemm<tile_m = 128, tile_n = 128, stages = 33>} : () -> ()

// -----

// expected-error @+1 {{expected consumers to be in 1..3, but got 0}}
"test.c3_no_consumers"() {a = #fp8_sm90.gemm<tile_m = 128, tile_n = 128, stages = 4, consumers = 0>} : () -> ()

// -----

// expected-error @+1 {{expected group to be in 1..64, but got 65}}
"test.c3_group"() {a = #fp8_sm90.gemm<tile_m = 128, tile_n = 128, stages = 4, group = 65>} : () -> ()

// -----

// expected-error @+1 {{expected group to be in 1..64, but got 0}}
"test.c3_no_group"() {a = #fp8_sm90.gemm<tile_m = 128, tile_n = 128, stages = 4, group = 0>} : () -> ()

// -----

// expected-error @+1 {{expected split_k to be in 1..64, but got 65}}
"test.c3_split_k"() {a = #fp8_sm90.gemm<tile_m = 128, tile_n = 128, stages = 4, split_k = 65>} : () -> ()

// -----

// expected-error @+1 {{expected split_k to be in 1..64, but got 0}}
"test.c3_no_split_k"() {a = #fp8_sm90.gemm<tile_m = 128, tile_n = 128, stages = 4, split_k = 0>} : () -> ()

// -----

// expected-error @+1 {{expected staging to be in 1..4, but got 5}}
"test.c3_staging"() {a = #fp8_sm90.gemm<tile_m = 128, tile_n = 128, stages = 4, staging = 5>} : () -> ()

// -----

// expected-error @+1 {{expected pending to be in 0..1, but got 2}}
"test.c3_pending"() {a = #fp8_sm90.gemm<tile_m = 128, tile_n = 128, stages = 4, pending = 2>} : () -> ()

// -----

// expected-error @+1 {{expected neither split_k nor swap_ab with ping_pong, but got swap_ab}}
"test.c4_swap_ab"() {a = #fp8_sm90.gemm<tile_m = 16, tile_n = 64, stages = 4, schedule = ping_pong, swap_ab = true, store = direct>} : () -> ()

// -----

// expected-error @+1 {{expected neither pending nor overlap with split_k, but got pending}}
"test.c7_pending"() {a = #fp8_sm90.gemm<tile_m = 128, tile_n = 128, stages = 4, split_k = 2, pending = 1>} : () -> ()

// -----

// expected-error @+1 {{expected neither pending nor overlap with split_k, but got overlap}}
"test.c7_overlap"() {a = #fp8_sm90.gemm<tile_m = 128, tile_n = 128, stages = 4, split_k = 2, overlap = true>} : () -> ()

// -----

// expected-error @+1 {{expected tile_m to be 128 with overlap, but got 256}}
"test.c7_waves"() {a = #fp8_sm90.gemm<tile_m = 256, tile_n = 64, stages = 4, overlap = true>} : () -> ()

// -----

// expected-error @+1 {{expected tile_n to be 64 with overlap, but got 128}}
"test.c7_waves_swapped"() {a = #fp8_sm90.gemm<tile_m = 16, tile_n = 128, stages = 4, consumers = 1, swap_ab = true, store = direct, overlap = true>} : () -> ()

// -----

// expected-error @+1 {{expected lifters to be in 0..2, but got 3}}
"test.c3_lifters"() {a = #fp8_sm90.gemm<tile_m = 128, tile_n = 128, stages = 4, lifters = 3>} : () -> ()

// -----

// expected-error @+1 {{expected lifters with ping_pong}}
"test.c5_lifters"() {a = #fp8_sm90.gemm<tile_m = 128, tile_n = 128, stages = 4, schedule = ping_pong, lifters = 0>} : () -> ()

// -----

// expected-error @+1 {{expected lift_warps to be in 4..4, but got 2}}
"test.c3_no_lifters"() {a = #fp8_sm90.gemm<tile_m = 8, tile_n = 128, stages = 4, swap_ab = true, store = direct, lifters = 0, lift_warps = 2>} : () -> ()

// -----

// expected-error @+1 {{expected lift_warps to be in 1..4, but got 8}}
"test.c3_lift_warps"() {a = #fp8_sm90.gemm<tile_m = 128, tile_n = 128, stages = 4, lift_warps = 8>} : () -> ()

// -----

// expected-error @+1 {{expected lift_warps to be 1, 2, 4 or 8, but got 3}}
"test.c3_lift_warps_power"() {a = #fp8_sm90.gemm<tile_m = 128, tile_n = 128, stages = 4, lift_warps = 3>} : () -> ()

// -----

// expected-error @+1 {{expected stage_blocks to be 1, 2 or 4, but got 3}}
"test.c8_three"() {a = #fp8_sm90.gemm<tile_m = 8, tile_n = 64, stages = 4, consumers = 1, swap_ab = true, store = direct, lifters = 0, stage_blocks = 3>} : () -> ()

// -----

// expected-error @+1 {{expected stage_blocks to be in 1..4, but got 8}}
"test.c8_many"() {a = #fp8_sm90.gemm<tile_m = 8, tile_n = 64, stages = 4, consumers = 1, swap_ab = true, store = direct, lifters = 0, stage_blocks = 8>} : () -> ()

// -----

// expected-error @+1 {{expected swap_ab and no lifters with stage_blocks 2}}
"test.c8_lifters"() {a = #fp8_sm90.gemm<tile_m = 8, tile_n = 64, stages = 4, consumers = 1, swap_ab = true, store = direct, stage_blocks = 2>} : () -> ()

// -----

// expected-error @+1 {{expected split_k to be 2, 4 or 8 and neither cluster_m nor cluster_n with cluster_k, but got 3, 1 and 1}}
"test.c9_three"() {a = #fp8_sm90.gemm<tile_m = 8, tile_n = 64, stages = 4, consumers = 1, split_k = 3, swap_ab = true, store = direct, cluster_k = true>} : () -> ()

// -----

// expected-error @+1 {{expected split_k to be 2, 4 or 8 and neither cluster_m nor cluster_n with cluster_k, but got 2, 1 and 2}}
"test.c9_cluster"() {a = #fp8_sm90.gemm<tile_m = 8, tile_n = 64, stages = 4, consumers = 1, split_k = 2, swap_ab = true, store = direct, cluster_n = 2, cluster_k = true>} : () -> ()

// -----

// expected-error @+1 {{struct is missing required parameter: stages}}
"test.missing"() {a = #fp8_sm90.gemm<tile_m = 128, tile_n = 256>} : () -> ()
