// RUN: fp8-opt %s --fp8-set-target=chip=sm_90a --fp8-select-kernels --fp8-build-kernels --fp8-launch-kernels --split-input-file | FileCheck %s
// RUN: fp8-opt %s --fp8-decompose-attention --split-input-file | FileCheck %s --check-prefix=CPU

// Invariant attention has one tile of keys, whatever the queries, and what hides keys, and no polynomials.

!q = tensor<2x?x32x128xbf16>
!k = tensor<2x?x8x128xbf16>
// CHECK-LABEL: @prompt
// CHECK: fp8_gpu.launch @fp8_kernels::@fp8_attention_sm90a_bf16_d128_causal_invariant_128x96_s2
// Sums of chunks are in local memory.
// CHECK: llvm.alloca {{.*}} x !llvm.array<64 x f32>
// CHECK: llvm.store volatile
func.func @prompt(%q: !q, %k: !k, %v: !k) -> !q attributes {fp8.invariant} {
  %0 = fp8.attention %q, %k, %v scale = 0.088 window = [*, 0] : !q, !k, !k -> !q
  return %0 : !q
}

// -----

!q = tensor<2x1x32x128xbf16>
!k = tensor<2x?x8x128xbf16>
!m = tensor<2x1x1x?xi1>
// CHECK-LABEL: @token
// CHECK: fp8_gpu.launch @fp8_kernels::@fp8_attention_sm90a_bf16_d128_invariant_64x96
// CHECK-NOT: llvm.alloca
func.func @token(%q: !q, %k: !k, %v: !k, %m: !m) -> !q attributes {fp8.invariant} {
  %0 = fp8.attention %q, %k, %v mask(%m : !m) scale = 0.088 : !q, !k, !k -> !q
  return %0 : !q
}

// -----

!q = !fp8.scaled<2x?x32x128xf8E4M3FN, block = [*, *, *, *], scale = f32>
!k = !fp8.scaled<2x?x8x128xf8E4M3FN, block = [*, *, *, *], scale = f32>
!o = tensor<2x?x32x128xbf16>
// CHECK-LABEL: @codes
// CHECK: fp8_gpu.launch @fp8_kernels::@fp8_attention_sm90a_f8_d128_promote_invariant_128x96
func.func @codes(%q: !q, %k: !k, %v: !k) -> !o attributes {fp8.invariant} {
  %0 = fp8.attention %q, %k, %v scale = 0.088 : !q, !k, !k -> !o
  return %0 : !o
}

// -----

!q = tensor<2x?x4x64xbf16>
!s = tensor<2xi32>
// On a CPU keys are moved, so that sums begin at the first of a batch.
// CPU-LABEL: @moved
// CPU: tensor.extract %{{.*}}[%{{.*}}, %{{.*}}, %{{.*}}] : tensor<8x?x64xbf16>
func.func @moved(%q: !q, %k: !q, %v: !q, %s: !s) -> !q attributes {fp8.invariant} {
  %0 = fp8.attention %q, %k, %v key_starts(%s : !s) scale = 0.125 : !q, !q, !q -> !q
  return %0 : !q
}
