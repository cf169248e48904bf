// RUN: fp8-opt --allow-unregistered-dialect %s | FileCheck %s

// Defaults are not printed.
// CHECK: "test.op"() {fp8_gpu.config = #fp8_sm90.gemm<tile_m = 128, tile_n = 256, stages = 4>} : () -> ()
"test.op"() {fp8_gpu.config = #fp8_sm90.gemm<tile_m = 128, tile_n = 256, stages = 4, consumers = 2, schedule = cooperative, group = 16, split_k = 1, swap_ab = false, store = tma, cluster_m = 1, staging = 2, pending = 0, overlap = false, epilogue = unrolled>} : () -> ()

// CHECK: #fp8_sm90.gemm<tile_m = 64, tile_n = 256, stages = 4, schedule = ping_pong, store = direct>
"test.op"() {fp8_gpu.config = #fp8_sm90.gemm<tile_m = 64, tile_n = 256, stages = 4, schedule = ping_pong, store = direct>} : () -> ()

// CHECK: #fp8_sm90.gemm<tile_m = 128, tile_n = 128, stages = 4, cluster_m = 2>
"test.op"() {fp8_gpu.config = #fp8_sm90.gemm<tile_m = 128, tile_n = 128, stages = 4, cluster_m = 2>} : () -> ()

// CHECK: #fp8_sm90.gemm<tile_m = 16, tile_n = 64, stages = 12, consumers = 1, group = 1, split_k = 4, swap_ab = true, store = direct>
"test.op"() {fp8_gpu.config = #fp8_sm90.gemm<tile_m = 16, tile_n = 64, stages = 12, consumers = 1, group = 1, split_k = 4, swap_ab = true, store = direct>} : () -> ()

// CHECK: #fp8_sm90.gemm<tile_m = 128, tile_n = 64, stages = 8, consumers = 1, swap_ab = true, store = direct, cluster_n = 2>
"test.op"() {fp8_gpu.config = #fp8_sm90.gemm<tile_m = 128, tile_n = 64, stages = 8, consumers = 1, swap_ab = true, store = direct, cluster_n = 2>} : () -> ()

// CHECK: #fp8_sm90.gemm<tile_m = 128, tile_n = 64, stages = 4, staging = 1, overlap = true, epilogue = looped>
"test.op"() {fp8_gpu.config = #fp8_sm90.gemm<tile_m = 128, tile_n = 64, stages = 4, staging = 1, overlap = true, epilogue = looped>} : () -> ()

// CHECK: #fp8_sm90.gemm<tile_m = 64, tile_n = 64, stages = 4, schedule = ping_pong, pending = 1>
"test.op"() {fp8_gpu.config = #fp8_sm90.gemm<tile_m = 64, tile_n = 64, stages = 4, schedule = ping_pong, pending = 1>} : () -> ()

// CHECK: #fp8_sm90.gemm<tile_m = 128, tile_n = 128, stages = 4, split_k = 2, cluster_m = 4, cluster_n = 2>
"test.op"() {fp8_gpu.config = #fp8_sm90.gemm<tile_m = 128, tile_n = 128, stages = 4, split_k = 2, cluster_m = 4, cluster_n = 2>} : () -> ()
