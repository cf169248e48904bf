// RUN: fp8-opt %s --split-input-file --fp8-allocate-state --fp8-functionalize-state --verify-diagnostics

!q = !fp8.scaled<8x16xf8E4M3FN, block = [*, *], scale = f32>

// expected-error @below {{expected scaling state as tensors in structured control flow only, but 'blocks' has several blocks}}
func.func @blocks(%x: tensor<8x16xbf16>) {
  %0 = fp8.quantize %x recipe(#fp8.delayed) : tensor<8x16xbf16> -> !q
  cf.br ^bb1
^bb1:
  return
}

// -----

!q = !fp8.scaled<8x16xf8E4M3FN, block = [*, *], scale = f32>

func.func @other_region(%x: tensor<8x16xbf16>) {
  // expected-error @below {{'scf.execute_region' op expected scaling state to be used in functions, scf.for, scf.if and scf.while only}}
  scf.execute_region {
    %0 = fp8.quantize %x recipe(#fp8.delayed) : tensor<8x16xbf16> -> !q
    scf.yield
  }
  return
}

// -----

module attributes {fp8.state = #fp8.state_table<#fp8.delayed, [#fp8.slot<"x" : f8E4M3FN, fprop activation>]>} {
  func.func @counts(%amax: tensor<1x1xf32>, %n: f64, %state: !fp8.state) {
    %c0 = arith.constant 0 : index
    // expected-error @below {{'fp8.record_amax' op expected no counts: a state of tensors has none}}
    fp8.record_amax %amax, %state[%c0] counts(%n, %n) : tensor<1x1xf32>
    return
  }
}

// -----

// expected-error @below {{expected no initial=current with scaling state as tensors, whose caller gives the first scales, but got #fp8.delayed<initial = current>}}
module attributes {fp8.state = #fp8.state_table<#fp8.delayed<initial = current>, [#fp8.slot<"x" : f8E4M3FN, fprop activation>]>} {
  func.func @f(%state: !fp8.state) {
    return
  }
}
