// RUN: fp8-opt %s --fp8-allocate-state --split-input-file --verify-diagnostics

func.func @first(%x: tensor<4x64xbf16>) attributes {fp8.amax_group = "tp"} {
  call @inner(%x) : (tensor<4x64xbf16>) -> ()
  return
}
func.func @second(%x: tensor<4x64xbf16>) {
  // expected-error @+1 {{expected all callers of 'inner' to have the same fp8.amax_group, but got none and "tp"}}
  call @inner(%x) : (tensor<4x64xbf16>) -> ()
  return
}
func.func private @inner(%x: tensor<4x64xbf16>) {
  %0 = fp8.quantize %x recipe(#fp8.current) : tensor<4x64xbf16> -> !fp8.scaled<4x64xf8E4M3FN, block = [*, *], scale = f32>
  return
}

// -----

func.func @first(%x: tensor<4x64xbf16>) attributes {fp8.amax_group = "tp"} {
  call @outer(%x) : (tensor<4x64xbf16>) -> ()
  return
}
func.func @second(%x: tensor<4x64xbf16>) attributes {fp8.amax_group = "dp"} {
  // expected-error @+1 {{expected all callers of 'outer' to have the same fp8.amax_group, but got "dp" and "tp"}}
  call @outer(%x) : (tensor<4x64xbf16>) -> ()
  return
}
func.func private @outer(%x: tensor<4x64xbf16>) {
  call @inner(%x) : (tensor<4x64xbf16>) -> ()
  return
}
func.func private @inner(%x: tensor<4x64xbf16>) {
  %0 = fp8.quantize %x recipe(#fp8.current) : tensor<4x64xbf16> -> !fp8.scaled<4x64xf8E4M3FN, block = [*, *], scale = f32>
  return
}
