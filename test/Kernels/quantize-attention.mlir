// RUN: fp8-opt --fp8-quantize-attention=chip=sm_90a --split-input-file --verify-diagnostics %s | FileCheck %s
// RUN: fp8-opt --fp8-quantize-attention=chip=sm_90a --fp8-set-target=chip=sm_90a --fp8-select-kernels --fp8-build-kernels --fp8-launch-kernels --split-input-file %s 2>/dev/null | FileCheck %s --check-prefix=LAUNCH
// RUN: fp8-opt --fp8-quantize-attention=chip=sm_90a --fp8-decompose-attention --split-input-file %s 2>/dev/null | FileCheck %s --check-prefix=CPU

// The kernel stores codes, measures what they are of, and takes their scale as
// a pass would, which may be said behind the attention.

!q = !fp8.scaled<1x256x4x64xf8E4M3FN, block = [*, *, *, *], scale = f32>
!y = !fp8.scaled<256x256xf8E4M3FN, block = [*, *], scale = f32>
!one = tensor<1x1xf32>
// CHECK-LABEL: @delayed
// CHECK: %[[TWICE:.*]] = arith.mulf
// CHECK: %[[CODES:.*]], %[[AMAX:.*]], %[[LSE:.*]] = fp8.quantized_attention scale(%[[TWICE]] : tensor<1x1xf32>) {
// CHECK: %[[O:.*]], %[[L:.*]] = fp8.attention {{.*}} window = [*, 0] accumulate = fast
// CHECK: fp8.attention_yield %[[O]], %[[L]]
// CHECK: } : tensor<1x256x4x64xf8E4M3FN> amax tensor<1x1xf32> lse tensor<1x4x256xf32>
// CHECK: %[[ROWS:.*]] = tensor.collapse_shape %[[CODES]] {{\[\[}}0, 1], [2, 3]] : tensor<1x256x4x64xf8E4M3FN> into tensor<256x256xf8E4M3FN>
// CHECK: %[[Y:.*]] = fp8.assemble %[[ROWS]], %arg2
// CHECK: return %[[Y]], %[[AMAX]], %[[LSE]]
// LAUNCH-LABEL: @delayed
// LAUNCH: %[[ZERO:.*]] = linalg.fill
// LAUNCH: fp8_gpu.launch @fp8_kernels::@fp8_attention_sm90a_f8_d64_causal_to_f8_192x160_s2_raised
// LAUNCH-SAME: outs({{.*}}, %[[ZERO]], {{.*}} : tensor<1x256x4x64xf8E4M3FN>, tensor<1x1xf32>, tensor<1x4x256xf32>)
// LAUNCH: llvm.atomicrmw umax
// CPU-LABEL: @delayed
// CPU-NOT: fp8.quantized_attention
// CPU: fp8.quantize
// CPU: fp8.amax
func.func @delayed(%q: !q, %s: !one, %si: !one) -> (!y, !one, tensor<1x4x256xf32>) {
  %o, %lse = fp8.attention %q, %q, %q scale = 0.125 window = [*, 0] accumulate = fast : !q, !q, !q -> tensor<1x256x4x64xbf16>, tensor<1x4x256xf32>
  %x = tensor.collapse_shape %o [[0, 1], [2, 3]] : tensor<1x256x4x64xbf16> into tensor<256x256xbf16>
  %amax = fp8.amax %x block = [*, *] : tensor<256x256xbf16>
  %twice = arith.mulf %s, %s : !one
  %y = fp8.quantize %x scale(%twice, %si : !one, !one) : tensor<256x256xbf16> -> <256x256xf8E4M3FN, block = [*, *], scale = f32>
  return %y, %amax, %lse : !y, !one, tensor<1x4x256xf32>
}

// -----

// So it is with numbers for Q, K and V, and where nothing is measured.

!q = tensor<1x?x4x64xf16>
// CHECK-LABEL: @static
// CHECK: fp8.quantized_attention
// CHECK: } : tensor<1x?x4x64xf8E5M2>
// CHECK: tensor.collapse_shape {{.*}} : tensor<1x?x4x64xf8E5M2> into tensor<?x256xf8E5M2>
// LAUNCH-LABEL: @static
// LAUNCH: fp8_attention_sm90a_f16_d64_to_f8
func.func @static(%q: !q, %s: tensor<1x1xf32>) -> tensor<?x256xf8E5M2> {
  %o = fp8.attention %q, %q, %q scale = 0.125 : !q, !q, !q -> tensor<1x?x4x64xbf16>
  %x = tensor.collapse_shape %o [[0, 1], [2, 3]] : tensor<1x?x4x64xbf16> into tensor<?x256xbf16>
  %y = fp8.quantize %x scale(%s, %s : tensor<1x1xf32>, tensor<1x1xf32>) : tensor<?x256xbf16> -> <?x256xf8E5M2, block = [*, *], scale = f32>
  %codes, %si = fp8.disassemble %y : <?x256xf8E5M2, block = [*, *], scale = f32>
  return %codes : tensor<?x256xf8E5M2>
}

// -----

// A scale that follows from the result, or a result that others read, keeps it
// in 16 bits, and so does a chip without such a kernel, or few queries.

!q = !fp8.scaled<1x256x4x64xf8E4M3FN, block = [*, *, *, *], scale = f32>
!o = tensor<1x256x4x64xbf16>
!one = tensor<1x1x1x1xf32>
// CHECK-LABEL: @current
// CHECK-NOT: quantized_attention
func.func @current(%q: !q) -> !q {
  // expected-remark @+1 {{the result stays in high precision: its quantization has other scales than one for the tensor that is known before}}
  %o = fp8.attention %q, %q, %q scale = 0.125 : !q, !q, !q -> !o
  %y = fp8.quantize %o recipe(#fp8.current) : !o -> <1x256x4x64xf8E4M3FN, block = [*, *, *, *], scale = f32>
  return %y : !q
}

// CHECK-LABEL: @read
// CHECK-NOT: quantized_attention
func.func @read(%q: !q) -> !o {
  // expected-remark @+1 {{the result stays in high precision: 'func.return' reads it, too}}
  %o = fp8.attention %q, %q, %q scale = 0.125 : !q, !q, !q -> !o
  return %o : !o
}

!few = !fp8.scaled<1x1x4x64xf8E4M3FN, block = [*, *, *, *], scale = f32>
!y = !fp8.scaled<1x256xf8E4M3FN, block = [*, *], scale = f32>
// CHECK-LABEL: @few
// CHECK-NOT: quantized_attention
func.func @few(%q: !few, %k: !q, %s: tensor<1x1xf32>) -> !y {
  // expected-remark @+1 {{the result stays in high precision: expected a result of 16 bits of few queries, but got codes}}
  %o = fp8.attention %q, %k, %k scale = 0.125 : !few, !q, !q -> tensor<1x1x4x64xbf16>
  %x = tensor.collapse_shape %o [[0, 1], [2, 3]] : tensor<1x1x4x64xbf16> into tensor<1x256xbf16>
  %y = fp8.quantize %x scale(%s, %s : tensor<1x1xf32>, tensor<1x1xf32>) : tensor<1x256xbf16> -> <1x256xf8E4M3FN, block = [*, *], scale = f32>
  return %y : !y
}
