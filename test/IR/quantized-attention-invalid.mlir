// RUN: fp8-opt --split-input-file --verify-diagnostics %s

!o = tensor<1x8x2x64xbf16>
func.func @c1(%q: !o, %s: tensor<1x1xf32>) {
  // expected-error @+1 {{expected the body to have one 'fp8.attention' and to yield its results}}
  %c = fp8.quantized_attention scale(%s : tensor<1x1xf32>) {
    fp8.attention_yield %q : !o
  } : tensor<1x8x2x64xf8E4M3FN>
  return
}

// -----

!o = tensor<1x8x2x64xbf16>
func.func @c2(%q: !o, %s: tensor<1x1xf32>) {
  // expected-error @+1 {{expected codes of the shape of 'tensor<1x8x2x64xbf16>', but got 'tensor<1x2x8x64xf8E4M3FN>'}}
  %c = fp8.quantized_attention scale(%s : tensor<1x1xf32>) {
    %o = fp8.attention %q, %q, %q scale = 1.0 : !o, !o, !o -> !o
    fp8.attention_yield %o : !o
  } : tensor<1x2x8x64xf8E4M3FN>
  return
}

// -----

!o = tensor<1x8x2x64xf32>
func.func @c3(%q: !o, %s: tensor<1x1xf32>) {
  // expected-error @+1 {{expected a result of 'fp8.attention' of bf16 or f16, but got 'tensor<1x8x2x64xf32>'}}
  %c = fp8.quantized_attention scale(%s : tensor<1x1xf32>) {
    %o = fp8.attention %q, %q, %q scale = 1.0 : !o, !o, !o -> !o
    fp8.attention_yield %o : !o
  } : tensor<1x8x2x64xf8E4M3FN>
  return
}

// -----

!o = tensor<1x8x2x64xbf16>
func.func @c4(%q: !o, %s: tensor<2xf32>) {
  // expected-error @+1 {{expected scale to have one element, but got 'tensor<2xf32>'}}
  %c = fp8.quantized_attention scale(%s : tensor<2xf32>) {
    %o = fp8.attention %q, %q, %q scale = 1.0 : !o, !o, !o -> !o
    fp8.attention_yield %o : !o
  } : tensor<1x8x2x64xf8E4M3FN>
  return
}

// -----

!o = tensor<1x8x2x64xbf16>
func.func @c4_amax(%q: !o, %s: tensor<1xf32>) {
  // expected-error @+1 {{expected amax to be 'tensor<1xf32>', as scale is, but got 'tensor<1x1xf32>'}}
  %c, %a = fp8.quantized_attention scale(%s : tensor<1xf32>) {
    %o = fp8.attention %q, %q, %q scale = 1.0 : !o, !o, !o -> !o
    fp8.attention_yield %o : !o
  } : tensor<1x8x2x64xf8E4M3FN> amax tensor<1x1xf32>
  return
}

// -----

!o = tensor<1x8x2x64xbf16>
func.func @c5(%q: !o, %s: tensor<1x1xf32>) {
  // expected-error @+1 {{expected lse to be that of the 'fp8.attention', if it has one}}
  %c, %l = fp8.quantized_attention scale(%s : tensor<1x1xf32>) {
    %o = fp8.attention %q, %q, %q scale = 1.0 : !o, !o, !o -> !o
    fp8.attention_yield %o : !o
  } : tensor<1x8x2x64xf8E4M3FN> lse tensor<1x2x8xf32>
  return
}
