// RUN: fp8-opt --fp8-set-target=chip=sm_100a --fp8-select-kernels --split-input-file --verify-diagnostics %s | FileCheck %s
// RUN: fp8-opt --fp8-set-target=chip=sm_100a --fp8-select-kernels --fp8-build-kernels --fp8-launch-kernels --split-input-file %s | FileCheck %s --check-prefix=LAUNCH

// A block has 128 keys and steps of 128 queries, two of which are in shared memory. P is a first operand from tensor memory, as
// scores lie; their gradients are one by rows for dK, and by columns for dQ.

!q = tensor<2x?x8x128xbf16>
!k = tensor<2x?x2x128xbf16>
!r = tensor<2x8x?xf32>
// CHECK-LABEL: @causal
// CHECK: fp8.attention_backward {{.*}}fp8_gpu.config = #fp8_sm100.attention<tile_q = 128, tile_k = 128, stages = 2>
// LAUNCH: workspace<bytes = {{[^,]*}}, zero = true>
// LAUNCH-LABEL: @causal
// LAUNCH: fp8_gpu.launch @fp8_kernels::@fp8_attention_backward_sm100a_bf16_d128_causal_128x128_s2
// LAUNCH: llvm.atomicrmw uinc_wrap
// LAUNCH: red.relaxed.gpu.global.add.v4.f32
// LAUNCH: nvvm.tcgen05.mma {{.*}}: (!llvm.ptr<6>, i64, i64, i32, i1)
// LAUNCH: nvvm.tcgen05.mma {{.*}}: (!llvm.ptr<6>, !llvm.ptr<6>, i64, i32, i1)
func.func @causal(%g: !q, %q: !q, %k: !k, %v: !k, %l: !r, %d: !r) -> (!q, !k, !k) {
  %0, %1, %2 = fp8.attention_backward %g, %q, %k, %v, %l, %d scale = 0.125 window = [*, 0] : !q, !q, !k, !k, !r, !r -> !q, !k, !k
  return %0, %1, %2 : !q, !k, !k
}

// -----

// Any order is that of the keys, too: blocks draw tickets.

!q = tensor<1x300x4x64xf16>
!r = tensor<1x4x300xf32>
// CHECK-LABEL: @any
// CHECK: #fp8_sm100.attention<tile_q = 128, tile_k = 128, stages = 2>
// LAUNCH-LABEL: @any
// LAUNCH: llvm.atomicrmw uinc_wrap
func.func @any(%g: !q, %l: !r, %ranges: tensor<1x300x2xi32>) -> (!q, !q, !q) {
  %0, %1, %2 = fp8.attention_backward %g, %g, %g, %g, %l, %l key_ranges(%ranges : tensor<1x300x2xi32>) scale = 0.125 cap = 20.0 order = any : !q, !q, !q, !q, !r, !r -> !q, !q, !q
  return %0, %1, %2 : !q, !q, !q
}

// -----

// Others are products and a softmax.

!q = tensor<1x300x4x96xf16>
!r = tensor<1x4x300xf32>
// CHECK-LABEL: @columns
// CHECK-NOT: fp8_gpu.config
func.func @columns(%g: !q, %l: !r) -> (!q, !q, !q) {
  // expected-remark @below {{no kernel: expected head dimensions of 64 or 128, the same for values, but got 96 and 96}}
  %0, %1, %2 = fp8.attention_backward %g, %g, %g, %g, %l, %l scale = 0.125 : !q, !q, !q, !q, !r, !r -> !q, !q, !q
  return %0, %1, %2 : !q, !q, !q
}

// -----

!q = tensor<1x300x4x64xbf16>
!s = !fp8.scaled<1x300x4x64xf8E4M3FN, block = [*, *, *, *], scale = f32>
!r = tensor<1x4x300xf32>
func.func @codes(%g: !q, %q: !s, %l: !r) -> (!q, !q, !q) {
  // expected-remark @below {{no kernel: expected numbers of 16 bits, but got codes of f8E4M3FN}}
  %0, %1, %2 = fp8.attention_backward %g, %q, %q, %q, %l, %l scale = 0.125 : !q, !s, !s, !s, !r, !r -> !q, !q, !q
  return %0, %1, %2 : !q, !q, !q
}

// -----

!q = tensor<1x300x4x64xbf16>
!r = tensor<1x4x300xf32>
func.func @dropout(%g: !q, %l: !r, %s: tensor<2xi64>) -> (!q, !q, !q) {
  // expected-remark @below {{no kernel: expected no dropout of scores whose lanes are keys}}
  %0, %1, %2 = fp8.attention_backward %g, %g, %g, %g, %l, %l dropout(%s : tensor<2xi64>) rate = 0.1 scale = 0.125 : !q, !q, !q, !q, !r, !r -> !q, !q, !q
  return %0, %1, %2 : !q, !q, !q
}
