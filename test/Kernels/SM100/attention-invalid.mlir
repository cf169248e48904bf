// RUN: fp8-opt %s --fp8-set-target=chip=sm_100a --fp8-select-kernels --allow-unregistered-dialect --split-input-file --verify-diagnostics

// expected-error @+1 {{expected tile_q to be 128 or 256, but got 64}}
"test.c1"() {a = #fp8_sm100.attention<tile_q = 64, tile_k = 128, stages = 2>} : () -> ()

// -----

// expected-error @+1 {{expected tile_k to be a multiple of 16 from 16 to 128, but got 160}}
"test.c2"() {a = #fp8_sm100.attention<tile_q = 128, tile_k = 160, stages = 2>} : () -> ()

// -----

// expected-error @+1 {{expected stages to be in 1..8, but got 0}}
"test.c3"() {a = #fp8_sm100.attention<tile_q = 128, tile_k = 32, stages = 0>} : () -> ()

// -----

// expected-error @+1 {{expected polynomials to be in 0..16, but got 17}}
"test.c4"() {a = #fp8_sm100.attention<tile_q = 128, tile_k = 32, stages = 2, polynomials = 17>} : () -> ()

// -----

// expected-error @+1 {{expected split_tiles to be in 0..1024, but got 2000}}
"test.c5"() {a = #fp8_sm100.attention<tile_q = 128, tile_k = 64, stages = 2, split_tiles = 2000>} : () -> ()

// -----

// expected-error @+1 {{expected tile_q of 128 and tile_k of a multiple of 64 with split_tiles, but got 128 and 96}}
"test.c5_keys"() {a = #fp8_sm100.attention<tile_q = 128, tile_k = 96, stages = 2, split_tiles = 2>} : () -> ()

// -----

// expected-error @+1 {{expected tile_heads to be a power of two from 1 to 32, but got 3}}
"test.c6"() {a = #fp8_sm100.attention<tile_q = 128, tile_k = 64, stages = 2, tile_heads = 3, split_tiles = 2>} : () -> ()

// -----

// expected-error @+1 {{expected tile_heads of 1, but got 4 without split_tiles}}
"test.c6_alone"() {a = #fp8_sm100.attention<tile_q = 128, tile_k = 64, stages = 2, tile_heads = 4>} : () -> ()

// -----

!few = tensor<1x9x8x64xbf16>
func.func @few(%q: !few) -> !few {
  // expected-error @below {{expected 1 to 8 queries, known when it is compiled, with split_tiles, but got 9}}
  %0 = fp8.attention %q, %q, %q scale = 0.125 {fp8_gpu.config = #fp8_sm100.attention<tile_q = 128, tile_k = 64, stages = 2, tile_heads = 4, split_tiles = 2>} : !few, !few, !few -> !few
  return %0 : !few
}

// -----

!few = tensor<1x1x8x64xbf16>
func.func @dropped(%q: !few, %s: tensor<2xi64>) -> !few {
  // expected-error @below {{expected split_tiles of 0 with dropout, but got 2}}
  %0 = fp8.attention %q, %q, %q dropout(%s : tensor<2xi64>) rate = 0.1 scale = 0.125 {fp8_gpu.config = #fp8_sm100.attention<tile_q = 128, tile_k = 64, stages = 2, split_tiles = 2>} : !few, !few, !few -> !few
  return %0 : !few
}

// -----

!few = tensor<1x1x8x64xbf16>
func.func @invariant(%q: !few) -> !few attributes {fp8.invariant} {
  // expected-error @below {{expected split_tiles of 0 in invariant attention, but got 2}}
  %0 = fp8.attention %q, %q, %q scale = 0.125 {fp8_gpu.config = #fp8_sm100.attention<tile_q = 128, tile_k = 64, stages = 2, split_tiles = 2>} : !few, !few, !few -> !few
  return %0 : !few
}

// -----

!b = tensor<1x32x4x256xbf16>
func.func @columns(%q: !b) -> !b {
  // expected-error @below {{expected up to 512 columns of tensor memory, but #fp8_sm100.attention<tile_q = 256, tile_k = 64, stages = 2> needs 640}}
  %0 = fp8.attention %q, %q, %q scale = 0.125 {fp8_gpu.config = #fp8_sm100.attention<tile_q = 256, tile_k = 64, stages = 2>} : !b, !b, !b -> !b
  return %0 : !b
}

// -----

!b = tensor<1x32x4x128xbf16>
func.func @memory(%q: !b) -> !b {
  // expected-error @below {{expected up to 232448 bytes of shared memory, but #fp8_sm100.attention<tile_q = 256, tile_k = 128, stages = 3> needs 295104}}
  %0 = fp8.attention %q, %q, %q scale = 0.125 {fp8_gpu.config = #fp8_sm100.attention<tile_q = 256, tile_k = 128, stages = 3>} : !b, !b, !b -> !b
  return %0 : !b
}

// -----

!b = tensor<1x32x4x64xbf16>
func.func @other(%q: !b) -> !b {
  // expected-error @below {{expected a #fp8_sm100.attention, but got #fp8_sm90.attention<tile_q = 128, tile_k = 128, stages = 2>}}
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

!q = tensor<1x300x4x64xbf16>
!r = tensor<1x4x300xf32>
func.func @tile(%g: !q, %l: !r) -> (!q, !q, !q) {
  // expected-error @below {{expected tile_q and tile_k of 128 and no split_tiles, but got #fp8_sm100.attention<tile_q = 256, tile_k = 128, stages = 1>}}
  %0, %1, %2 = fp8.attention_backward %g, %g, %g, %g, %l, %l scale = 0.125 {fp8_gpu.config = #fp8_sm100.attention<tile_q = 256, tile_k = 128, stages = 1>} : !q, !q, !q, !q, !r, !r -> !q, !q, !q
  return %0, %1, %2 : !q, !q, !q
}

// -----

!q = tensor<1x300x4x128xbf16>
!r = tensor<1x4x300xf32>
func.func @stages(%g: !q, %l: !r) -> (!q, !q, !q) {
  // expected-error @below {{expected up to 232448 bytes of shared memory, but #fp8_sm100.attention<tile_q = 128, tile_k = 128, stages = 3> needs}}
  %0, %1, %2 = fp8.attention_backward %g, %g, %g, %g, %l, %l scale = 0.125 {fp8_gpu.config = #fp8_sm100.attention<tile_q = 128, tile_k = 128, stages = 3>} : !q, !q, !q, !q, !r, !r -> !q, !q, !q
  return %0, %1, %2 : !q, !q, !q
}
