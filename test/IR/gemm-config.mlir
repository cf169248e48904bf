// RUN: fp8-opt --allow-unregistered-dialect %s | FileCheck %s

// Defaults are not printed.
// CHECK: "test.op"() {fp8.gemm_config = #fp8.gemm_config<tile_m = 128, tile_n = 256, stages = 4>} : () -> ()
"test.op"() {fp8.gemm_config = #fp8.gemm_config<tile_m = 128, tile_n = 256, stages = 4, consumers = 2, group = 16>} : () -> ()

// CHECK: #fp8.gemm_config<tile_m = 64, tile_n = 256, stages = 4, schedule = ping_pong, store = direct>
"test.op"() {fp8.gemm_config = #fp8.gemm_config<tile_m = 64, tile_n = 256, stages = 4, schedule = ping_pong, store = direct>} : () -> ()

// CHECK: #fp8.gemm_config<tile_m = 128, tile_n = 128, stages = 4, cluster = 2>
"test.op"() {fp8.gemm_config = #fp8.gemm_config<tile_m = 128, tile_n = 128, stages = 4, cluster = 2>} : () -> ()

// CHECK: #fp8.gemm_config<tile_m = 16, tile_n = 64, stages = 12, consumers = 1, group = 1, split_k = 4, swap_ab = true, store = direct>
"test.op"() {fp8.gemm_config = #fp8.gemm_config<tile_m = 16, tile_n = 64, stages = 12, consumers = 1, group = 1, split_k = 4, swap_ab = true, store = direct>} : () -> ()

// CHECK: #fp8.gemm_config<tile_m = 128, tile_n = 64, stages = 8, consumers = 1, swap_ab = true, store = direct, cluster = 2>
"test.op"() {fp8.gemm_config = #fp8.gemm_config<tile_m = 128, tile_n = 64, stages = 8, consumers = 1, swap_ab = true, store = direct, cluster = 2>} : () -> ()
