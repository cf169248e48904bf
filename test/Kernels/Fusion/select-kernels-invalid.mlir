// RUN: fp8-opt --fp8-set-target=chip=sm_90a --fp8-select-kernels --split-input-file --verify-diagnostics %s

func.func @config_of_another_kind(%x: tensor<32x64xbf16>) -> tensor<1x1xf32> {
  // expected-error @below {{'fp8.fusion' op expected a #fp8_fusion.config, but got #fp8_transpose.config<warps = 8>}}
  %0 = fp8.fusion(%x) {
  ^bb0(%a: tensor<32x64xbf16>):
    %1 = fp8.amax %a block = [*, *] : tensor<32x64xbf16>
    fp8.yield %1 : tensor<1x1xf32>
  } {fp8_gpu.config = #fp8_transpose.config<warps = 8>} : (tensor<32x64xbf16>) -> tensor<1x1xf32>
  return %0 : tensor<1x1xf32>
}

// -----

func.func @config_without_a_kernel(%x: tensor<32x?xbf16>) -> tensor<32x1xf32> {
  // expected-error @below {{'fp8.fusion' op expected a static row length for a row reduction}}
  %0 = fp8.fusion(%x) {
  ^bb0(%a: tensor<32x?xbf16>):
    %1 = fp8.amax %a block = [1, *] : tensor<32x?xbf16>
    fp8.yield %1 : tensor<32x1xf32>
  } {fp8_gpu.config = #fp8_fusion.config<rows = 1, chunks = 1, lanes = 32, across = 1, down = 8, cluster = 1, resident = 2>} : (tensor<32x?xbf16>) -> tensor<32x1xf32>
  return %0 : tensor<32x1xf32>
}

// -----

func.func @too_many_places(%x: tensor<4096x4096xbf16>) -> tensor<1x1xf32> {
  // expected-error @below {{'fp8.fusion' op expected at most 16 rows and chunks of a thread, but got 32}}
  %0 = fp8.fusion(%x) {
  ^bb0(%a: tensor<4096x4096xbf16>):
    %1 = fp8.amax %a block = [*, *] : tensor<4096x4096xbf16>
    fp8.yield %1 : tensor<1x1xf32>
  } {fp8_gpu.config = #fp8_fusion.config<rows = 8, chunks = 4, lanes = 32, across = 1, down = 8, cluster = 1, resident = 2>} : (tensor<4096x4096xbf16>) -> tensor<1x1xf32>
  return %0 : tensor<1x1xf32>
}

// -----

func.func @too_few_rows_to_transpose(%x: tensor<32x64xbf16>, %s: tensor<1x1xf32>) -> tensor<64x32xf8E4M3FN> {
  // expected-error @below {{'fp8.fusion' op expected a thread with 4 rows and a tile with 16, to be transposed, but got 2 and 32}}
  %0 = fp8.fusion(%x, %s) {
  ^bb0(%a: tensor<32x64xbf16>, %b: tensor<1x1xf32>):
    %q = fp8.quantize %a scale(%b, %b : tensor<1x1xf32>, tensor<1x1xf32>) : tensor<32x64xbf16> -> !fp8.scaled<32x64xf8E4M3FN, block = [*, *], scale = f32>
    %t = fp8.transpose %q permutation = [1, 0] : !fp8.scaled<32x64xf8E4M3FN, block = [*, *], scale = f32>
    %codes, %factor = fp8.disassemble %t : !fp8.scaled<64x32xf8E4M3FN, block = [*, *], scale = f32>
    fp8.yield %codes : tensor<64x32xf8E4M3FN>
  } {fp8_gpu.config = #fp8_fusion.config<rows = 2, chunks = 1, lanes = 16, across = 1, down = 8, cluster = 1, resident = 2>} : (tensor<32x64xbf16>, tensor<1x1xf32>) -> tensor<64x32xf8E4M3FN>
  return %0 : tensor<64x32xf8E4M3FN>
}

// -----

func.func @part_of_a_block_of_rows(%x: tensor<256x256xbf16>) -> tensor<2x2xf32> {
  // expected-error @below {{'fp8.fusion' op expected a tile of whole blocks of 128 rows, but got 64}}
  %0 = fp8.fusion(%x) {
  ^bb0(%a: tensor<256x256xbf16>):
    %1 = fp8.amax %a block = [128, 128] : tensor<256x256xbf16>
    fp8.yield %1 : tensor<2x2xf32>
  } {fp8_gpu.config = #fp8_fusion.config<rows = 8, chunks = 1, lanes = 16, across = 1, down = 4, cluster = 1, resident = 2>} : (tensor<256x256xbf16>) -> tensor<2x2xf32>
  return %0 : tensor<2x2xf32>
}

// -----

func.func @part_of_a_block_of_columns(%x: tensor<256x256xbf16>) -> tensor<256x2xf32> {
  // expected-error @below {{'fp8.fusion' op expected lanes for blocks of 128 columns, but got 8}}
  %0 = fp8.fusion(%x) {
  ^bb0(%a: tensor<256x256xbf16>):
    %1 = fp8.amax %a block = [1, 128] : tensor<256x256xbf16>
    fp8.yield %1 : tensor<256x2xf32>
  } {fp8_gpu.config = #fp8_fusion.config<rows = 4, chunks = 1, lanes = 8, across = 1, down = 4, cluster = 1, resident = 2>} : (tensor<256x256xbf16>) -> tensor<256x2xf32>
  return %0 : tensor<256x2xf32>
}

// -----

func.func @part_of_a_row(%x: tensor<256x1024xbf16>) -> tensor<256x1xf32> {
  // expected-error @below {{'fp8.fusion' op expected tiles of whole rows of 1024, but got 512}}
  %0 = fp8.fusion(%x) {
  ^bb0(%a: tensor<256x1024xbf16>):
    %1 = fp8.amax %a block = [1, *] : tensor<256x1024xbf16>
    fp8.yield %1 : tensor<256x1xf32>
  } {fp8_gpu.config = #fp8_fusion.config<rows = 1, chunks = 1, lanes = 32, across = 1, down = 4, cluster = 2, resident = 2>} : (tensor<256x1024xbf16>) -> tensor<256x1xf32>
  return %0 : tensor<256x1xf32>
}

// -----

func.func @cluster_without_rows(%x: tensor<256x1024xbf16>) -> tensor<1x1xf32> {
  // expected-error @below {{'fp8.fusion' op expected a cluster to have whole rows, and no more blocks than 32 lanes, but got 2}}
  %0 = fp8.fusion(%x) {
  ^bb0(%a: tensor<256x1024xbf16>):
    %1 = fp8.amax %a block = [*, *] : tensor<256x1024xbf16>
    fp8.yield %1 : tensor<1x1xf32>
  } {fp8_gpu.config = #fp8_fusion.config<rows = 1, chunks = 1, lanes = 32, across = 1, down = 4, cluster = 2, resident = 2>} : (tensor<256x1024xbf16>) -> tensor<1x1xf32>
  return %0 : tensor<1x1xf32>
}

// -----

// Two copies in the other order of a tile of 128 x 1024.

func.func @shared_memory(%x: tensor<4096x4096xbf16>, %s: tensor<1x1xf32>) -> (tensor<4096x4096xf8E4M3FN>, tensor<4096x4096xf8E5M2>) {
  // expected-error @below {{'fp8.fusion' op expected at most 232448 bytes of shared memory, but got 262144}}
  %0:2 = fp8.fusion(%x, %s) {
  ^bb0(%a: tensor<4096x4096xbf16>, %b: tensor<1x1xf32>):
    %q = fp8.quantize %a scale(%b, %b : tensor<1x1xf32>, tensor<1x1xf32>) : tensor<4096x4096xbf16> -> !fp8.scaled<4096x4096xf8E4M3FN, block = [*, *], scale = f32>
    %t = fp8.transpose %q permutation = [1, 0] : !fp8.scaled<4096x4096xf8E4M3FN, block = [*, *], scale = f32>
    %codes, %factor = fp8.disassemble %t : !fp8.scaled<4096x4096xf8E4M3FN, block = [*, *], scale = f32>
    %r = fp8.quantize %a scale(%b, %b : tensor<1x1xf32>, tensor<1x1xf32>) : tensor<4096x4096xbf16> -> !fp8.scaled<4096x4096xf8E5M2, block = [*, *], scale = f32>
    %u = fp8.transpose %r permutation = [1, 0] : !fp8.scaled<4096x4096xf8E5M2, block = [*, *], scale = f32>
    %others, %another = fp8.disassemble %u : !fp8.scaled<4096x4096xf8E5M2, block = [*, *], scale = f32>
    fp8.yield %codes, %others : tensor<4096x4096xf8E4M3FN>, tensor<4096x4096xf8E5M2>
  } {fp8_gpu.config = #fp8_fusion.config<rows = 16, chunks = 1, lanes = 16, across = 8, down = 4, cluster = 1, resident = 1>} : (tensor<4096x4096xbf16>, tensor<1x1xf32>) -> (tensor<4096x4096xf8E4M3FN>, tensor<4096x4096xf8E5M2>)
  return %0#0, %0#1 : tensor<4096x4096xf8E4M3FN>, tensor<4096x4096xf8E5M2>
}

// -----

!x = tensor<256x512xbf16>
!t = tensor<512x256xbf16>
func.func @rotated_rows(%x: !x) -> tensor<512x16xf32> {
  // expected-error @below {{expected 16 rows of a warp, which are rotated together, but got 8}}
  %0 = fp8.fusion(%x) {
  ^bb0(%in: !x):
    %e = tensor.empty() : !t
    %t = linalg.transpose ins(%in : !x) outs(%e : !t) permutation = [1, 0]
    %y = fp8.hadamard %t signs = 1 : !t
    %a = fp8.amax %y block = [1, 16] : !t
    fp8.yield %a : tensor<512x16xf32>
  } {fp8_gpu.config = #fp8_fusion.config<rows = 8, chunks = 1, lanes = 32, across = 1, down = 8, cluster = 1, resident = 1>}
      : (!x) -> tensor<512x16xf32>
  return %0 : tensor<512x16xf32>
}

// -----

!x = tensor<256x512xbf16>
func.func @rotated_columns(%x: !x) -> tensor<256x32xf32> {
  // expected-error @below {{expected lanes for blocks of 16 columns, but got 1}}
  %0 = fp8.fusion(%x) {
  ^bb0(%in: !x):
    %y = fp8.hadamard %in signs = 1 : !x
    %a = fp8.amax %y block = [1, 16] : !x
    fp8.yield %a : tensor<256x32xf32>
  } {fp8_gpu.config = #fp8_fusion.config<rows = 1, chunks = 1, lanes = 1, across = 1, down = 8, cluster = 1, resident = 1>}
      : (!x) -> tensor<256x32xf32>
  return %0 : tensor<256x32xf32>
}

// -----

!x = tensor<256x512xbf16>
!t = tensor<512x256xbf16>
!one = tensor<1x1xf32>
!q = !fp8.scaled<512x256xf4E2M1FN, block = [*, *], scale = f32>
func.func @drawn_rows(%x: !x, %s: !one, %seed: tensor<4xi32>) -> !x {
  // expected-error @below {{expected a multiple of 4 rows of a thread, whose numbers are drawn together, but got 2}}
  %0 = fp8.fusion(%x, %s, %seed) {
  ^bb0(%in: !x, %scale: !one, %words: tensor<4xi32>):
    %e = tensor.empty() : !t
    %t = linalg.transpose ins(%in : !x) outs(%e : !t) permutation = [1, 0]
    %q = fp8.quantize %t scale(%scale, %scale : !one, !one) seed(%words : tensor<4xi32>) : !t -> !q
    %r = fp8.transpose %q permutation = [1, 0] : !q
    %v = fp8.dequantize %r : !fp8.scaled<256x512xf4E2M1FN, block = [*, *], scale = f32> -> !x
    fp8.yield %v : !x
  } {fp8_gpu.config = #fp8_fusion.config<rows = 2, chunks = 1, lanes = 32, across = 1, down = 8, cluster = 1, resident = 1>}
      : (!x, !one, tensor<4xi32>) -> !x
  return %0 : !x
}
