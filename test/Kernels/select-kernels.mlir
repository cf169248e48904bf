// RUN: fp8-opt --fp8-set-target=chip=sm_90a --fp8-select-kernels --verify-diagnostics %s | FileCheck %s

!x = !fp8.scaled<4096x4096xf8E4M3FN, block = [*, *], scale = f32>
!d = !fp8.scaled<?x4096xf8E4M3FN, block = [*, *], scale = f32>
!t = !fp8.scaled<16x4096xf8E4M3FN, block = [*, *], scale = f32>
!n = !fp8.scaled<4095x4096xf8E4M3FN, block = [*, *], scale = f32>
!r = !fp8.scaled<4096x4096xf8E4M3FN, block = [1, 128], scale = f32>
!w = !fp8.scaled<4096x4096xf8E4M3FN, block = [128, 128], scale = f32>
!u = !fp8.scaled<8191x7184xf8E4M3FN, block = [*, *], scale = f32>
!v = !fp8.scaled<2112x7184xf8E4M3FN, block = [*, *], scale = f32>
!m = !fp8.scaled<4096x4096xf8E4M3FN, block = [1, 64], scale = f32>

// A large product takes what the board's power allows: wide tiles read least.
// CHECK-LABEL: @large
// CHECK: fp8_gpu.config = #fp8_sm90.gemm<tile_m = 128, tile_n = 208, stages = 4, schedule = ping_pong, pending = 1>
func.func @large(%a: !x) -> tensor<4096x4096xbf16> {
  %0 = fp8.matmul %a, %a accumulate = fast : !x, !x -> tensor<4096x4096xbf16>
  return %0 : tensor<4096x4096xbf16>
}

// CHECK-LABEL: @unknown_m
// CHECK: fp8_gpu.config = #fp8_sm90.gemm<tile_m = 128, tile_n = 208, stages = 4, schedule = ping_pong, pending = 1>
func.func @unknown_m(%a: !d, %b: !x) -> tensor<?x4096xbf16> {
  %0 = fp8.matmul %a, %b accumulate = fast : !d, !x -> tensor<?x4096xbf16>
  return %0 : tensor<?x4096xbf16>
}

// CHECK-LABEL: @promoted
// CHECK: fp8_gpu.config = #fp8_sm90.gemm<tile_m = 256, tile_n = 128, stages = 3, staging = 4>
func.func @promoted(%a: !r, %b: !w) -> tensor<4096x4096xbf16> {
  %0 = fp8.matmul %a, %b : !r, !w -> tensor<4096x4096xbf16>
  return %0 : tensor<4096x4096xbf16>
}

// CHECK-LABEL: @small_m
// CHECK: fp8_gpu.config = #fp8_sm90.gemm<tile_m = 16, tile_n = 64, {{.*}}swap_ab = true, store = direct, pending = 1>
func.func @small_m(%a: !t, %b: !x) -> tensor<16x4096xbf16> {
  %0 = fp8.matmul %a, %b accumulate = fast : !t, !x -> tensor<16x4096xbf16>
  return %0 : tensor<16x4096xbf16>
}

// CHECK-LABEL: @odd_rows
// CHECK: store = direct
func.func @odd_rows(%a: !x, %b: !n) -> tensor<4096x4095xbf16> {
  %0 = fp8.matmul %a, %b accumulate = fast : !x, !n -> tensor<4096x4095xbf16>
  return %0 : tensor<4096x4095xbf16>
}

// Rows that do not start at cache lines are shared by two blocks.
// CHECK-LABEL: @unaligned_rows
// CHECK: fp8_gpu.config = #fp8_sm90.gemm<tile_m = 128, tile_n = 176, stages = 5, schedule = ping_pong, cluster_m = 2, pending = 1>
func.func @unaligned_rows(%a: !u, %b: !v) -> tensor<8191x2112xbf16> {
  %0 = fp8.matmul %a, %b accumulate = fast : !u, !v -> tensor<8191x2112xbf16>
  return %0 : tensor<8191x2112xbf16>
}

// CHECK-LABEL: @pinned
// CHECK: fp8_gpu.config = #fp8_sm90.gemm<tile_m = 64, tile_n = 64, stages = 3, consumers = 1>
func.func @pinned(%a: !x) -> tensor<4096x4096xbf16> {
  %0 = fp8.matmul %a, %a accumulate = fast
    {fp8_gpu.config = #fp8_sm90.gemm<tile_m = 64, tile_n = 64, stages = 3, consumers = 1>}
    : !x, !x -> tensor<4096x4096xbf16>
  return %0 : tensor<4096x4096xbf16>
}

// CHECK-LABEL: @no_kernel
// CHECK-NOT: fp8_gpu.config
func.func @no_kernel(%a: !m) -> tensor<4096x4096xbf16> {
  // expected-remark @below {{no kernel: expected A to have f32 scale factors per tensor, per row, per 1x128 or per 128x128}}
  %0 = fp8.matmul %a, %a : !m, !m -> tensor<4096x4096xbf16>
  return %0 : tensor<4096x4096xbf16>
}
