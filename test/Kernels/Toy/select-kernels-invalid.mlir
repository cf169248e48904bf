// RUN: toy-opt %s --fp8-select-kernels --split-input-file --verify-diagnostics
// RUN: toy-opt %s --fp8-build-kernels --split-input-file --verify-diagnostics=only-expected

// Who chooses refuses what was chosen before: a config of another dialect, one
// that does not fit, one for a kind that the architecture has no kernels of. Who
// builds does so too, if nobody has asked the other.

#target = #fp8_gpu.target<
  chip = "sm_80", compute_capability = 80, features = "+ptx80", multiprocessors = 4,
  shared_bytes = 166912, registers = 65536, mma_rate = 1, l2_rate = 1, memory_rate = 1>
module attributes {fp8_gpu.target = #target} {
  func.func @other_dialect(%x: tensor<4x8xf32>, %s: f32) -> tensor<4x8xf32> {
    // expected-error @+1 {{expected a #toy.scale_config, but got #fp8_sm90.gemm<tile_m = 64, tile_n = 64, stages = 3, consumers = 1>}}
    %0 = toy.scale %x by %s {fp8_gpu.config = #fp8_sm90.gemm<tile_m = 64, tile_n = 64, stages = 3, consumers = 1>}
      : tensor<4x8xf32>, f32
    return %0 : tensor<4x8xf32>
  }
}

// -----

#target = #fp8_gpu.target<
  chip = "sm_80", compute_capability = 80, features = "+ptx80", multiprocessors = 4,
  shared_bytes = 166912, registers = 32768, mma_rate = 1, l2_rate = 1, memory_rate = 1>
module attributes {fp8_gpu.target = #target} {
  func.func @fit(%x: tensor<4x8xf32>, %s: f32) -> tensor<4x8xf32> {
    // expected-error @+1 {{expected block to be a multiple of 32 up to 512, but got 1024}}
    %0 = toy.scale %x by %s {fp8_gpu.config = #toy.scale_config<block = 1024>} : tensor<4x8xf32>, f32
    return %0 : tensor<4x8xf32>
  }
}

// -----

#target = #fp8_gpu.target<
  chip = "sm_80", compute_capability = 80, features = "+ptx80", multiprocessors = 4,
  shared_bytes = 166912, registers = 65536, mma_rate = 1, l2_rate = 1, memory_rate = 1>
module attributes {fp8_gpu.target = #target} {
  func.func @spec(%x: tensor<4x8xf64>, %s: f32) -> tensor<4x8xf64> {
    // expected-error @+1 {{expected elements and a factor of f32, but got tensor<4x8xf64> and f32}}
    %0 = toy.scale %x by %s {fp8_gpu.config = #toy.scale_config<block = 64>} : tensor<4x8xf64>, f32
    return %0 : tensor<4x8xf64>
  }
}

// -----

#target = #fp8_gpu.target<
  chip = "sm_80", compute_capability = 80, features = "+ptx80", multiprocessors = 4,
  shared_bytes = 166912, registers = 65536, mma_rate = 1, l2_rate = 1, memory_rate = 1>
module attributes {fp8_gpu.target = #target} {
  func.func @matmul(%a: tensor<64x64xbf16>) -> tensor<64x64xf32> {
    // expected-error @+1 {{expected an architecture with matmul kernels, but got sm_80}}
    %0 = fp8.matmul %a, %a accumulate = fast {fp8_gpu.config = #toy.scale_config<block = 64>}
      : tensor<64x64xbf16>, tensor<64x64xbf16> -> tensor<64x64xf32>
    return %0 : tensor<64x64xf32>
  }
}

// -----

#target = #fp8_gpu.target<
  chip = "sm_90a", compute_capability = 90, features = "+ptx90", multiprocessors = 132,
  shared_bytes = 232448, registers = 65536, mma_rate = 4096, l2_rate = 49, memory_rate = 34>
module attributes {fp8_gpu.target = #target} {
  func.func @other_architecture(%x: tensor<4x8xf32>, %s: f32) -> tensor<4x8xf32> {
    // expected-error @+1 {{expected an architecture with toy_scale kernels, but got sm_90a}}
    %0 = toy.scale %x by %s {fp8_gpu.config = #toy.scale_config<block = 64>} : tensor<4x8xf32>, f32
    return %0 : tensor<4x8xf32>
  }
}

// -----

!a = !fp8.scaled<256x256xf8E4M3FN, block = [*, *], scale = f32>
#target = #fp8_gpu.target<
  chip = "sm_90a", compute_capability = 90, features = "+ptx90", multiprocessors = 132,
  shared_bytes = 232448, registers = 65536, mma_rate = 4096, l2_rate = 49, memory_rate = 34>
module attributes {fp8_gpu.target = #target} {
  func.func @matmul_of_other_dialect(%a: !a) -> tensor<256x256xbf16> {
    // expected-error @+1 {{expected a #fp8_sm90.gemm, but got #toy.scale_config<block = 64>}}
    %0 = fp8.matmul %a, %a accumulate = fast {fp8_gpu.config = #toy.scale_config<block = 64>}
      : !a, !a -> tensor<256x256xbf16>
    return %0 : tensor<256x256xbf16>
  }
}
