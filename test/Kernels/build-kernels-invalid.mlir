// RUN: fp8-opt --fp8-set-target=chip=sm_90a --fp8-build-kernels --split-input-file --verify-diagnostics %s

!a = !fp8.scaled<256x256xf8E4M3FN, block = [*, *], scale = f32>
func.func @shared_memory(%a: !a) -> tensor<256x256xbf16> {
  // expected-error @below {{expected up to 232448 bytes of shared memory, but #fp8_sm90.gemm<tile_m = 128, tile_n = 256, stages = 5> needs}}
  %0 = fp8.matmul %a, %a accumulate = fast
    {fp8_gpu.config = #fp8_sm90.gemm<tile_m = 128, tile_n = 256, stages = 5>}
    : !a, !a -> tensor<256x256xbf16>
  return %0 : tensor<256x256xbf16>
}

// -----

!a = !fp8.scaled<256x256xf8E4M3FN, block = [*, *], scale = f32>
func.func @registers(%a: !a) -> tensor<256x256xbf16> {
  // expected-error @below {{expected accumulators of up to 216 registers a thread, but #fp8_sm90.gemm<tile_m = 128, tile_n = 256, stages = 4> need 256}}
  %0 = fp8.matmul %a, %a accumulate = promote
    {fp8_gpu.config = #fp8_sm90.gemm<tile_m = 128, tile_n = 256, stages = 4>}
    : !a, !a -> tensor<256x256xbf16>
  return %0 : tensor<256x256xbf16>
}

// -----

!a = !fp8.scaled<256x256xf8E4M3FN, block = [1, 64], scale = f32>
func.func @other_blocks(%a: !a) -> tensor<256x256xbf16> {
  // expected-error @below {{expected A to have f32 scale factors per tensor, per row, per 1x128 or per 128x128}}
  %0 = fp8.matmul %a, %a
    {fp8_gpu.config = #fp8_sm90.gemm<tile_m = 128, tile_n = 128, stages = 4>}
    : !a, !a -> tensor<256x256xbf16>
  return %0 : tensor<256x256xbf16>
}

// -----

!a = !fp8.scaled<256x200xf8E4M3FN, block = [*, *], scale = f32>
func.func @k_of_16(%a: !a) -> tensor<256x256xbf16> {
  // expected-error @below {{expected K to be a multiple of 16, which bulk tensor copies of A need, but got 200}}
  %0 = fp8.matmul %a, %a
    {fp8_gpu.config = #fp8_sm90.gemm<tile_m = 128, tile_n = 128, stages = 4>}
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
  } {fp8_gpu.config = #fp8_sm90.gemm<tile_m = 128, tile_n = 128, stages = 4>}
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
  } {fp8_gpu.config = #fp8_sm90.gemm<tile_m = 128, tile_n = 128, stages = 4>}
    : !a, !a -> tensor<256x256xf32>
  return %0 : tensor<256x256xf32>
}

// -----

!a = !fp8.scaled<256x256xf8E4M3FN, block = [*, *], scale = f32>
func.func @registers_of_an_instruction(%a: !a) -> tensor<256x256xbf16> {
  // expected-error @below {{expected an instruction to write up to 102 registers of 512 threads, but #fp8_sm90.gemm<tile_m = 192, tile_n = 208, stages = 3, consumers = 3> writes 104}}
  %0 = fp8.matmul %a, %a accumulate = fast
    {fp8_gpu.config = #fp8_sm90.gemm<tile_m = 192, tile_n = 208, stages = 3, consumers = 3>}
    : !a, !a -> tensor<256x256xbf16>
  return %0 : tensor<256x256xbf16>
}

// -----

!p = tensor<256x256xf32>
func.func @f32_transposed(%a: !p) -> tensor<256x256xf32> {
  // expected-error @below {{expected K to be the innermost dimension of B, which the tensor core transposes only of 16-bit elements, but they are f32}}
  %0 = fp8.matmul %a, %a transpose_b accumulate = fast
    {fp8_gpu.config = #fp8_sm90.gemm<tile_m = 128, tile_n = 128, stages = 3>}
    : !p, !p -> tensor<256x256xf32>
  return %0 : tensor<256x256xf32>
}

// -----

// 56 codes are 56 bytes, with which every second tile begins between multiples of
// 16.

!a = !fp8.scaled<256x256xf8E4M3FN, block = [*, *], scale = f32>
func.func @slabs(%a: !a) -> tensor<256x256xf8E4M3FN> {
  %most = arith.constant 448.0 : f32
  %least = arith.constant -448.0 : f32
  // expected-error @below {{expected rows of a tile that can be stored in slabs of 16 to 128 bytes, but got 56 elements of f8E4M3FN}}
  %0 = fp8.matmul %a, %a accumulate = fast epilogue {
  ^bb0(%acc: f32):
    %1 = arith.minimumf %acc, %most : f32
    %2 = arith.maximumf %1, %least : f32
    %3 = arith.truncf %2 : f32 to f8E4M3FN
    fp8.yield %3 : f8E4M3FN
  } {fp8_gpu.config = #fp8_sm90.gemm<tile_m = 128, tile_n = 56, stages = 4>} : !a, !a -> tensor<256x256xf8E4M3FN>
  return %0 : tensor<256x256xf8E4M3FN>
}

// -----

// Halves of a pair that would cut blocks of 128 columns.

!a = !fp8.scaled<256x256xf8E4M3FN, block = [1, 128], scale = f32>
!b = !fp8.scaled<384x256xf8E4M3FN, block = [128, 128], scale = f32>
!y = tensor<256x384xbf16>
func.func @pair(%x: !a, %w: !b, %u: !b) -> !y {
  // expected-error @below {{expected the columns of either product of a pair to divide 128 or be a multiple of it with factors of 128 rows, but got 96}}
  %0 = fp8.sibling_matmuls {
    %1 = fp8.matmul %x, %w : !a, !b -> !y
    %2 = fp8.matmul %x, %u epilogue(%1 : !y) {
    ^bb0(%acc: f32, %gate: bf16):
      %5 = arith.extf %gate : bf16 to f32
      %6 = arith.mulf %acc, %5 : f32
      %7 = arith.truncf %6 : f32 to bf16
      fp8.yield %7 : bf16
    } : !a, !b -> !y
    fp8.yield %2 : !y
  } {fp8_gpu.config = #fp8_sm90.gemm<tile_m = 64, tile_n = 192, stages = 3, consumers = 1>} : !y
  return %0 : !y
}
