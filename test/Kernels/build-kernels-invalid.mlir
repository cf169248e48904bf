// RUN: fp8-opt --fp8-build-kernels --split-input-file --verify-diagnostics %s

!a = !fp8.scaled<256x256xf8E4M3FN, block = [*, *], scale = f32>
func.func @shared_memory(%a: !a) -> tensor<256x256xbf16> {
  // expected-error @below {{expected up to 232448 bytes of shared memory, but #fp8.gemm_config<tile_m = 128, tile_n = 256, stages = 5> needs}}
  %0 = fp8.matmul %a, %a accumulate = fast
    {fp8.gemm_config = #fp8.gemm_config<tile_m = 128, tile_n = 256, stages = 5>}
    : !a, !a -> tensor<256x256xbf16>
  return %0 : tensor<256x256xbf16>
}

// -----

!a = !fp8.scaled<256x256xf8E4M3FN, block = [*, *], scale = f32>
func.func @registers(%a: !a) -> tensor<256x256xbf16> {
  // expected-error @below {{expected accumulators of up to 216 registers a thread, but #fp8.gemm_config<tile_m = 128, tile_n = 256, stages = 4> need 256}}
  %0 = fp8.matmul %a, %a accumulate = promote
    {fp8.gemm_config = #fp8.gemm_config<tile_m = 128, tile_n = 256, stages = 4>}
    : !a, !a -> tensor<256x256xbf16>
  return %0 : tensor<256x256xbf16>
}

// -----

!a = !fp8.scaled<256x256xf8E4M3FN, block = [1, 128], scale = f32>
!b = !fp8.scaled<256x256xf8E4M3FN, block = [128, 128], scale = f32>
func.func @blocks_of_columns(%a: !a, %b: !b) -> tensor<256x256xbf16> {
  // expected-error @below {{expected tile_n to divide 128 or be a multiple of it with factors of 128 rows, but got 96}}
  %0 = fp8.matmul %a, %b
    {fp8.gemm_config = #fp8.gemm_config<tile_m = 128, tile_n = 96, stages = 4>}
    : !a, !b -> tensor<256x256xbf16>
  return %0 : tensor<256x256xbf16>
}

// -----

!a = !fp8.scaled<256x256xf8E4M3FN, block = [1, 32], scale = f8E8M0FNU>
func.func @mx_factors(%a: !a) -> tensor<256x256xbf16> {
  // expected-error @below {{expected A to have f32 factors per tensor, per row, per 1x128 or per 128x128}}
  %0 = fp8.matmul %a, %a
    {fp8.gemm_config = #fp8.gemm_config<tile_m = 128, tile_n = 128, stages = 4>}
    : !a, !a -> tensor<256x256xbf16>
  return %0 : tensor<256x256xbf16>
}

// -----

!a = !fp8.scaled<256x200xf8E4M3FN, block = [*, *], scale = f32>
func.func @k_of_16(%a: !a) -> tensor<256x256xbf16> {
  // expected-error @below {{expected K to be a multiple of 16, which bulk tensor copies need, but got 200}}
  %0 = fp8.matmul %a, %a
    {fp8.gemm_config = #fp8.gemm_config<tile_m = 128, tile_n = 128, stages = 4>}
    : !a, !a -> tensor<256x256xbf16>
  return %0 : tensor<256x256xbf16>
}

// -----

!a = !fp8.scaled<256x256xf8E4M3FN, block = [*, *], scale = f32>
func.func @unsaturated_rounding(%a: !a) -> tensor<256x256xf8E4M3FN> {
  // expected-error @below {{expected an epilogue that clamps in f32 before it rounds to 8 bits}}
  %0 = fp8.matmul %a, %a epilogue {
  ^bb0(%acc: f32):
    %1 = arith.truncf %acc : f32 to f8E4M3FN
    fp8.yield %1 : f8E4M3FN
  } {fp8.gemm_config = #fp8.gemm_config<tile_m = 128, tile_n = 128, stages = 4>}
    : !a, !a -> tensor<256x256xf8E4M3FN>
  return %0 : tensor<256x256xf8E4M3FN>
}

// -----

!a = !fp8.scaled<256x256xf8E4M3FN, block = [*, *], scale = f32>
func.func @tensor_captured(%a: !a, %t: tensor<4xf32>) -> tensor<256x256xf32> {
  %c0 = arith.constant 0 : index
  // expected-error @below {{expected the epilogue to use scalars from around it, but got tensor<4xf32>}}
  %0 = fp8.matmul %a, %a epilogue {
  ^bb0(%acc: f32):
    %1 = tensor.extract %t[%c0] : tensor<4xf32>
    fp8.yield %1 : f32
  } {fp8.gemm_config = #fp8.gemm_config<tile_m = 128, tile_n = 128, stages = 4>}
    : !a, !a -> tensor<256x256xf32>
  return %0 : tensor<256x256xf32>
}
