// RUN: fp8-opt %s --fp8-set-target=chip=sm_90a --fp8-select-kernels --allow-unregistered-dialect --split-input-file --verify-diagnostics

// expected-error @+1 {{expected tile_q to be 64, 128 or 192, but got 96}}
"test.c1"() {a = #fp8_sm90.attention<tile_q = 96, tile_k = 128, stages = 2>} : () -> ()

// -----

// expected-error @+1 {{expected tile_k to be a multiple of 16 from 16 to 256, but got 40}}
"test.c2"() {a = #fp8_sm90.attention<tile_q = 64, tile_k = 40, stages = 2>} : () -> ()

// -----

// expected-error @+1 {{expected stages to be in 1..8, but got 9}}
"test.c3"() {a = #fp8_sm90.attention<tile_q = 64, tile_k = 32, stages = 9>} : () -> ()

// -----

// expected-error @+1 {{expected split_tiles to be in 0..1024, but got 1025}}
"test.c4"() {a = #fp8_sm90.attention<tile_q = 64, tile_k = 32, stages = 2, split_tiles = 1025>} : () -> ()

// -----

// expected-error @+1 {{expected split_tiles of 0, but got 2 with tile_q 128}}
"test.c4_tile"() {a = #fp8_sm90.attention<tile_q = 128, tile_k = 32, stages = 2, split_tiles = 2>} : () -> ()

// -----

// expected-error @+1 {{expected tile_heads to be a power of two from 1 to 64, but got 6}}
"test.c5"() {a = #fp8_sm90.attention<tile_q = 64, tile_k = 32, stages = 2, tile_heads = 6, split_tiles = 2>} : () -> ()

// -----

// expected-error @+1 {{expected tile_heads of 1, but got 4 without split_tiles}}
"test.c5_split"() {a = #fp8_sm90.attention<tile_q = 64, tile_k = 32, stages = 2, tile_heads = 4>} : () -> ()

// -----

// expected-error @+1 {{expected polynomials to be in 0..16, but got 17}}
"test.c6"() {a = #fp8_sm90.attention<tile_q = 64, tile_k = 32, stages = 2, polynomials = 17>} : () -> ()

// -----

// expected-error @+1 {{expected maxima of a tile with turn raised or split_tiles, but got overflow}}
"test.c7"() {a = #fp8_sm90.attention<tile_q = 128, tile_k = 32, stages = 2, turn = raised, maxima = overflow>} : () -> ()

// -----

// expected-error @+2 {{expected ::mlir::fp8::sm90::AttentionTurn to be one of: none, issued, scored, raised}}
// expected-error @+1 {{failed to parse SM90_AttentionConfigAttr parameter 'turn'}}
"test.turn"() {a = #fp8_sm90.attention<tile_q = 128, tile_k = 32, stages = 2, turn = risen>} : () -> ()

// -----

!b = tensor<1x32x4x64xbf16>
func.func @queries(%q: !b) -> !b {
  // expected-error @below {{expected 1 to 16 queries, known when it is compiled, with split_tiles, but got 32}}
  %0 = fp8.attention %q, %q, %q scale = 0.125 {fp8_gpu.config = #fp8_sm90.attention<tile_q = 64, tile_k = 32, stages = 2, tile_heads = 4, split_tiles = 1>} : !b, !b, !b -> !b
  return %0 : !b
}

// -----

!b = tensor<1x32x4x64xbf16>
func.func @registers(%q: !b) -> !b {
  // expected-error @below {{expected up to 140 registers of a thread for scores and sums, but #fp8_sm90.attention<tile_q = 192, tile_k = 256, stages = 2> needs 224}}
  %0 = fp8.attention %q, %q, %q scale = 0.125 {fp8_gpu.config = #fp8_sm90.attention<tile_q = 192, tile_k = 256, stages = 2>} : !b, !b, !b -> !b
  return %0 : !b
}

// -----

!b = tensor<1x32x4x256xbf16>
func.func @memory(%q: !b) -> !b {
  // expected-error @below {{expected up to 232448 bytes of shared memory, but #fp8_sm90.attention<tile_q = 128, tile_k = 128, stages = 2> needs}}
  %0 = fp8.attention %q, %q, %q scale = 0.125 {fp8_gpu.config = #fp8_sm90.attention<tile_q = 128, tile_k = 128, stages = 2>} : !b, !b, !b -> !b
  return %0 : !b
}

// -----

!b = tensor<1x32x4x40xbf16>
func.func @head_dim(%q: !b) -> !b {
  // expected-remark @below {{no kernel: expected head dimensions of up to 256, multiples of 16, but got 40}}
  %0 = fp8.attention %q, %q, %q scale = 0.125 : !b, !b, !b -> !b
  return %0 : !b
}

// -----

func.func @page(%q: tensor<1x1x4x64xbf16>, %k: tensor<9x24x4x64xbf16>, %table: tensor<1x4xi32>) -> tensor<1x1x4x64xbf16> {
  // expected-error @below {{expected pages of a multiple of 8 keys that divides tile_k, 64, or that this divides, but got 24}}
  %0 = fp8.attention %q, %k, %k page_table(%table : tensor<1x4xi32>) scale = 1.0 {fp8_gpu.config = #fp8_sm90.attention<tile_q = 64, tile_k = 64, stages = 2, split_tiles = 1>} : tensor<1x1x4x64xbf16>, tensor<9x24x4x64xbf16>, tensor<9x24x4x64xbf16> -> tensor<1x1x4x64xbf16>
  return %0 : tensor<1x1x4x64xbf16>
}

// -----

func.func @no_page(%q: tensor<1x1x4x64xbf16>, %k: tensor<9x4x4x64xbf16>, %table: tensor<1x4xi32>) -> tensor<1x1x4x64xbf16> {
  // expected-remark @below {{no kernel: expected pages of a multiple of 8 keys that divides tile_k, 16, or that this divides, but got 4}}
  %0 = fp8.attention %q, %k, %k page_table(%table : tensor<1x4xi32>) scale = 1.0 : tensor<1x1x4x64xbf16>, tensor<9x4x4x64xbf16>, tensor<9x4x4x64xbf16> -> tensor<1x1x4x64xbf16>
  return %0 : tensor<1x1x4x64xbf16>
}

// -----

func.func @dropped_heads(%q: tensor<2x8x2x128xbf16>, %k: tensor<2x1x512x128xbf16>, %state: tensor<2xi64>) -> tensor<2x8x2x128xbf16> {
  // expected-error @below {{expected tile_heads of 1 with dropout, but got 8}}
  %0 = fp8.attention %q, %k, %k dropout(%state : tensor<2xi64>) rate = 0.1 scale = 1.0 layout = bhsd {fp8_gpu.config = #fp8_sm90.attention<tile_q = 64, tile_k = 64, stages = 2, tile_heads = 8, split_tiles = 2>} : tensor<2x8x2x128xbf16>, tensor<2x1x512x128xbf16>, tensor<2x1x512x128xbf16> -> tensor<2x8x2x128xbf16>
  return %0 : tensor<2x8x2x128xbf16>
}

// -----

!q = tensor<2x?x4x64xbf16>
func.func @config(%q: !q, %k: !q, %v: !q) -> !q attributes {fp8.invariant} {
  // expected-error @below {{expected tile_k of 96 and no polynomials in invariant attention, but got #fp8_sm90.attention<tile_q = 128, tile_k = 128, stages = 2>}}
  %0 = fp8.attention %q, %k, %v scale = 0.125 {fp8_gpu.config = #fp8_sm90.attention<tile_q = 128, tile_k = 128, stages = 2>} : !q, !q, !q -> !q
  return %0 : !q
}

// -----

!b = tensor<1x32x4x64xbf16>
func.func @overflow_dropout(%q: !b, %s: tensor<2xi64>) -> !b {
  // expected-error @below {{expected maxima of a tile with dropout and in invariant attention, but got #fp8_sm90.attention<tile_q = 128, tile_k = 32, stages = 2, maxima = overflow>}}
  %0 = fp8.attention %q, %q, %q dropout(%s : tensor<2xi64>) rate = 0.1 scale = 0.125 {fp8_gpu.config = #fp8_sm90.attention<tile_q = 128, tile_k = 32, stages = 2, maxima = overflow>} : !b, !b, !b -> !b
  return %0 : !b
}

// -----

!b = tensor<1x32x4x64xbf16>
func.func @overflow_p_scale(%q: !b) -> !b {
  // expected-error @below {{expected p_scale of 1 with numbers and #fp8_sm90.attention<tile_q = 128, tile_k = 32, stages = 2, maxima = overflow>, but got 2}}
  %0 = fp8.attention %q, %q, %q scale = 0.125 p_scale = 2.0 {fp8_gpu.config = #fp8_sm90.attention<tile_q = 128, tile_k = 32, stages = 2, maxima = overflow>} : !b, !b, !b -> !b
  return %0 : !b
}

// -----

!b = !fp8.scaled<1x256x4x64xf8E4M3FN, block = [1, 128, 1, *], scale = f32>
!r = tensor<1x256x4x64xbf16>
func.func @overflow_blocks(%q: !b) -> !r {
  // expected-error @below {{expected maxima of a tile with factors for blocks of positions, but got #fp8_sm90.attention<tile_q = 128, tile_k = 64, stages = 2, maxima = overflow>}}
  %0 = fp8.attention %q, %q, %q scale = 0.125 accumulate = promote {fp8_gpu.config = #fp8_sm90.attention<tile_q = 128, tile_k = 64, stages = 2, maxima = overflow>} : !b, !b, !b -> !r
  return %0 : !r
}
