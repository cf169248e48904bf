// RUN: fp8-opt %s --split-input-file --fp8-verify-state --verify-diagnostics

!q = !fp8.scaled<8x16xf8E4M3FN, block = [*, *], scale = f32>

module attributes {fp8.state = #fp8.state_table<#fp8.delayed, [#fp8.slot<"x" : f8E4M3FN, fprop activation>]>} {
  func.func @out_of_range(%state: !fp8.state) {
    %c1 = arith.constant 1 : index
    // expected-error @below {{'fp8.read_scale' op expected a slot of the 1 in the module's 'fp8.state', but got 1}}
    %s, %si = fp8.read_scale %state[%c1] : tensor<1x1xf32>
    return
  }
}

// -----

module attributes {fp8.state = #fp8.state_table<#fp8.nvfp4<stochastic_rounding = true>, [#fp8.slot<"x" : f4E2M1FN, dgrad gradient>]>} {
  func.func @seed_out_of_range(%state: !fp8.state) {
    %c1 = arith.constant 1 : index
    // expected-error @below {{'fp8.read_seed' op expected a slot of the 1 in the module's 'fp8.state', but got 1}}
    %seed = fp8.read_seed %state[%c1] : tensor<4xi32>
    return
  }
}

// -----

module attributes {fp8.state = #fp8.state_table<#fp8.delayed, [#fp8.slot<"x" : f8E4M3FN, fprop activation>]>} {
  func.func @no_seeds(%state: !fp8.state) {
    %c0 = arith.constant 0 : index
    // expected-error @below {{'fp8.read_seed' op expected a state whose recipe rounds stochastically, but got one of #fp8.delayed}}
    %seed = fp8.read_seed %state[%c0] : tensor<4xi32>
    return
  }
}

// -----

func.func @no_table(%state: !fp8.state) {
  %c0 = arith.constant 0 : index
  // expected-error @below {{'fp8.read_scale' op expected a slot of the 0 in the module's 'fp8.state', but got 0}}
  %s, %si = fp8.read_scale %state[%c0] : tensor<1x1xf32>
  return
}

// -----

module attributes {fp8.state = #fp8.state_table<#fp8.delayed, [#fp8.slot<"x" : f8E4M3FN, fprop activation>]>} {
  func.func @unknown(%state: !fp8.state, %slot: index) {
    // expected-error @below {{'fp8.read_scale' op expected a slot that follows from constants, arguments of private functions and induction variables of loops with constant bounds}}
    %s, %si = fp8.read_scale %state[%slot] : tensor<1x1xf32>
    return
  }
}

// -----

!q = !fp8.scaled<8x16xf8E5M2, block = [*, *], scale = f32>

module attributes {fp8.state = #fp8.state_table<#fp8.delayed, [#fp8.slot<"x" : f8E4M3FN, fprop activation>]>} {
  func.func @format(%x: tensor<8x16xbf16>, %state: !fp8.state) {
    %c0 = arith.constant 0 : index
    %s, %si = fp8.read_scale %state[%c0] : tensor<1x1xf32>
    // expected-error @below {{'fp8.quantize' op expected the format of slot 'x', 'f8E4M3FN', but got 'f8E5M2'}}
    %0 = fp8.quantize %x scale(%s, %si : tensor<1x1xf32>, tensor<1x1xf32>) : tensor<8x16xbf16> -> !q
    return
  }
}

// -----

!q = !fp8.scaled<8x16xf8E4M3FN, block = [*, *], scale = f32>

module attributes {fp8.state = #fp8.state_table<#fp8.delayed, [#fp8.slot<"x" : f8E4M3FN, fprop activation>, #fp8.slot<"y" : f8E4M3FN, fprop activation>]>} {
  func.func @two_reads(%x: tensor<8x16xbf16>, %state: !fp8.state) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %s, %si = fp8.read_scale %state[%c0] : tensor<1x1xf32>
    %t, %ti = fp8.read_scale %state[%c1] : tensor<1x1xf32>
    // expected-error @below {{'fp8.quantize' op expected scale and scale_inv from the same fp8.read_scale}}
    %0 = fp8.quantize %x scale(%s, %ti : tensor<1x1xf32>, tensor<1x1xf32>) : tensor<8x16xbf16> -> !q
    return
  }
}

// -----

!q = !fp8.scaled<8x16xf8E4M3FN, block = [*, *], scale = f32>

module attributes {fp8.state = #fp8.state_table<#fp8.delayed, [#fp8.slot<"x" : f8E4M3FN, fprop activation>]>} {
  func.func @other_tensor(%x: tensor<8x16xbf16>, %y: tensor<8x16xbf16>, %state: !fp8.state) {
    %c0 = arith.constant 0 : index
    %s, %si = fp8.read_scale %state[%c0] : tensor<1x1xf32>
    %0 = fp8.quantize %x scale(%s, %si : tensor<1x1xf32>, tensor<1x1xf32>) : tensor<8x16xbf16> -> !q
    %1 = fp8.amax %y block = [*, *] : tensor<8x16xbf16>
    // expected-error @below {{'fp8.record_amax' op expected the amax of a tensor that is quantized with the scale of slot 'x'}}
    fp8.record_amax %1, %state[%c0] : tensor<1x1xf32>
    return
  }
}

// -----

!q = !fp8.scaled<8x16xf8E4M3FN, block = [*, *], scale = f32>

module attributes {fp8.state = #fp8.state_table<#fp8.delayed, [#fp8.slot<"x" : f8E4M3FN, fprop activation>]>} {
  func.func @two_tensors(%x: tensor<8x16xbf16>, %y: tensor<8x16xbf16>, %state: !fp8.state) {
    %c0 = arith.constant 0 : index
    %s, %si = fp8.read_scale %state[%c0] : tensor<1x1xf32>
    %0 = fp8.quantize %x scale(%s, %si : tensor<1x1xf32>, tensor<1x1xf32>) : tensor<8x16xbf16> -> !q
    %1 = fp8.amax %x block = [*, *] : tensor<8x16xbf16>
    // expected-note @below {{the first one is here}}
    fp8.record_amax %1, %state[%c0] : tensor<1x1xf32>
    %2 = fp8.quantize %y scale(%s, %si : tensor<1x1xf32>, tensor<1x1xf32>) : tensor<8x16xbf16> -> !q
    %3 = fp8.amax %y block = [*, *] : tensor<8x16xbf16>
    // expected-error @below {{'fp8.record_amax' op expected one tensor to record slot 'x' in a step, but got another}}
    fp8.record_amax %3, %state[%c0] : tensor<1x1xf32>
    return
  }
}

// -----

!q = !fp8.scaled<8x16xf8E4M3FN, block = [*, *], scale = f32>

// Two calls that say that their slots begin at the same place.
module attributes {fp8.state = #fp8.state_table<#fp8.delayed, [#fp8.slot<"x" : f8E4M3FN, fprop activation>]>} {
  func.func private @layer(%x: tensor<8x16xbf16>, %state: !fp8.state, %first: index) {
    %s, %si = fp8.read_scale %state[%first] : tensor<1x1xf32>
    %0 = fp8.quantize %x scale(%s, %si : tensor<1x1xf32>, tensor<1x1xf32>) : tensor<8x16xbf16> -> !q
    %1 = fp8.amax %x block = [*, *] : tensor<8x16xbf16>
    // expected-note @below {{the first one is here}}
    // expected-error @below {{'fp8.record_amax' op expected one tensor to record slot 'x' in a step, but got another}}
    fp8.record_amax %1, %state[%first] : tensor<1x1xf32>
    return
  }
  func.func @same_first(%x: tensor<8x16xbf16>, %state: !fp8.state) {
    %c0 = arith.constant 0 : index
    call @layer(%x, %state, %c0) : (tensor<8x16xbf16>, !fp8.state, index) -> ()
    call @layer(%x, %state, %c0) : (tensor<8x16xbf16>, !fp8.state, index) -> ()
    return
  }
}

// -----

!q = !fp8.scaled<8x16xf8E4M3FN, block = [*, *], scale = f32>

// Iterations 0 and 2 fall on one slot.
module attributes {fp8.state = #fp8.state_table<#fp8.delayed, [#fp8.slot<"x" : f8E4M3FN, fprop activation>, #fp8.slot<"y" : f8E4M3FN, fprop activation>]>} {
  func.func @overlap(%x: tensor<8x16xbf16>, %state: !fp8.state) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c3 = arith.constant 3 : index
    scf.for %i = %c0 to %c3 step %c1 {
      %slot = arith.remui %i, %c2 : index
      %s, %si = fp8.read_scale %state[%slot] : tensor<1x1xf32>
      %0 = fp8.quantize %x scale(%s, %si : tensor<1x1xf32>, tensor<1x1xf32>) : tensor<8x16xbf16> -> !q
      %1 = fp8.amax %x block = [*, *] : tensor<8x16xbf16>
      // expected-note @below {{the first one is here}}
      // expected-error @below {{'fp8.record_amax' op expected one tensor to record slot 'x' in a step, but got another}}
      fp8.record_amax %1, %state[%slot] : tensor<1x1xf32>
    }
    return
  }
}

// -----

module attributes {fp8.state = #fp8.state_table<#fp8.delayed, []>} {
  func.func private @again(%state: !fp8.state) {
    // expected-error @below {{'func.call' op expected no recursion among functions with scaling state, but 'again' calls itself}}
    call @again(%state) : (!fp8.state) -> ()
    return
  }
  func.func @main(%state: !fp8.state) {
    call @again(%state) : (!fp8.state) -> ()
    return
  }
}

// -----

module attributes {fp8.state = #fp8.state_table<#fp8.delayed, [#fp8.slot<"w" : f8E4M3FN, fprop weight, cache = 132>]>} {
  func.func @cache(%state: !fp8.state) {
    %c0 = arith.constant 0 : index
    %0 = fp8.load_cached %state[%c0] : !fp8.scaled<8x16xf8E4M3FN, block = [*, *], scale = f32>
    // expected-error @below {{'fp8.load_cached' op expected slot 'w' to have a cache of 260 bytes of 'f8E4M3FN', but got 132 of 'f8E4M3FN'}}
    %1 = fp8.load_cached %state[%c0] : !fp8.scaled<16x16xf8E4M3FN, block = [*, *], scale = f32>
    return
  }
}
