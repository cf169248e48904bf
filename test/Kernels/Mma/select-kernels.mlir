// RUN: fp8-opt --fp8-set-target=chip=sm_89 --fp8-select-kernels --split-input-file --verify-diagnostics %s | FileCheck %s

!x = !fp8.scaled<8192x8192xf8E4M3FN, block = [*, *], scale = f32>
// CHECK-LABEL: func.func @large
// CHECK: fp8_gpu.config = #fp8_mma.gemm<tile_m = 256, tile_n = 128, stages = 2, warpgroups = 2, whole_chunks = true>
func.func @large(%a: !x) -> tensor<8192x8192xbf16> {
  %0 = fp8.matmul %a, %a : !x, !x -> tensor<8192x8192xbf16>
  return %0 : tensor<8192x8192xbf16>
}

// Few rows take the side of the instruction that shrinks.

!f = !fp8.scaled<16x8192xf8E4M3FN, block = [*, *], scale = f32>
// CHECK-LABEL: func.func @small
// CHECK: fp8_gpu.config = #fp8_mma.gemm<tile_m = 16, {{.*}}swap_ab = true, store = direct
func.func @small(%a: !f, %b: !x) -> tensor<16x8192xbf16> {
  %0 = fp8.matmul %a, %b : !f, !x -> tensor<16x8192xbf16>
  return %0 : tensor<16x8192xbf16>
}

// Rows of 251 elements are no multiple of 16 bytes.

!o = !fp8.scaled<251x8192xf8E4M3FN, block = [*, *], scale = f32>
// CHECK-LABEL: func.func @odd
// CHECK: fp8_gpu.config = #fp8_mma.gemm<{{.*}}store = direct
func.func @odd(%a: !x, %b: !o) -> tensor<8192x251xbf16> {
  %0 = fp8.matmul %a, %b : !x, !o -> tensor<8192x251xbf16>
  return %0 : tensor<8192x251xbf16>
}

// bf16 with either dimension innermost, f32 as TF32.

// CHECK-LABEL: func.func @plain
// CHECK-COUNT-2: fp8_gpu.config = #fp8_mma.gemm<
func.func @plain(%a: tensor<512x512xbf16>, %b: tensor<512x512xf32>) -> (tensor<512x512xbf16>, tensor<512x512xf32>) {
  %0 = fp8.matmul %a, %a transpose_a transpose_b accumulate = fast : tensor<512x512xbf16>, tensor<512x512xbf16> -> tensor<512x512xbf16>
  %1 = fp8.matmul %b, %b accumulate = fast : tensor<512x512xf32>, tensor<512x512xf32> -> tensor<512x512xf32>
  return %0, %1 : tensor<512x512xbf16>, tensor<512x512xf32>
}

// A copy's last chunk may not be whole where the length of rows is not known.

// CHECK-LABEL: func.func @unknown
// CHECK: fp8_gpu.config = #fp8_mma.gemm<{{.*}}warpgroups = 2>}
func.func @unknown(%a: tensor<4096x?xbf16>) -> tensor<4096x4096xbf16> {
  %0 = fp8.matmul %a, %a accumulate = fast : tensor<4096x?xbf16>, tensor<4096x?xbf16> -> tensor<4096x4096xbf16>
  return %0 : tensor<4096x4096xbf16>
}

// -----

func.func @not_whole(%a: tensor<4096x?xbf16>) -> tensor<4096x4096xbf16> {
  // expected-error @below {{expected a known K whose rows are multiples of 16 bytes to copy whole chunks, but got #fp8_mma.gemm<}}
  %0 = fp8.matmul %a, %a accumulate = fast {fp8_gpu.config = #fp8_mma.gemm<tile_m = 64, tile_n = 64, stages = 2, whole_chunks = true>}
    : tensor<4096x?xbf16>, tensor<4096x?xbf16> -> tensor<4096x4096xbf16>
  return %0 : tensor<4096x4096xbf16>
}
