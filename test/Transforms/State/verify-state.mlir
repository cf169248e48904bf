// RUN: fp8-opt %s --split-input-file --fp8-verify-state | FileCheck %s
// RUN: fp8-opt %S/allocate-state-control-flow.mlir --split-input-file --fp8-allocate-state --fp8-verify-state | FileCheck %s --check-prefix=ALLOCATED

// What allocation makes is accepted.
// ALLOCATED: func.func @outermost

// Branches that exclude each other may record one slot.
// CHECK-LABEL: func.func @branches
!q = !fp8.scaled<8x16xf8E4M3FN, block = [*, *], scale = f32>
module attributes {fp8.state = #fp8.state_table<#fp8.delayed, [#fp8.slot<"x" : f8E4M3FN, fprop activation>]>} {
  func.func @branches(%x: tensor<8x16xbf16>, %y: tensor<8x16xbf16>, %c: i1, %state: !fp8.state) {
    %c0 = arith.constant 0 : index
    %s, %si = fp8.read_scale %state[%c0] : tensor<1x1xf32>
    scf.if %c {
      %0 = fp8.quantize %x scale(%s, %si : tensor<1x1xf32>, tensor<1x1xf32>) : tensor<8x16xbf16> -> !q
      %1 = fp8.amax %x block = [*, *] : tensor<8x16xbf16>
      fp8.record_amax %1, %state[%c0] : tensor<1x1xf32>
    } else {
      %0 = fp8.quantize %y scale(%s, %si : tensor<1x1xf32>, tensor<1x1xf32>) : tensor<8x16xbf16> -> !q
      %1 = fp8.amax %y block = [*, *] : tensor<8x16xbf16>
      fp8.record_amax %1, %state[%c0] : tensor<1x1xf32>
    }
    return
  }
}

// -----

// A loop of unknown length and an scf.while share the slot of their body; what
// is quantized without state is of no interest.
// CHECK-LABEL: func.func @loops
!q = !fp8.scaled<8x16xf8E4M3FN, block = [*, *], scale = f32>
module attributes {fp8.state = #fp8.state_table<#fp8.delayed, [#fp8.slot<"x" : f8E4M3FN, fprop activation>, #fp8.slot<"y" : f8E4M3FN, fprop activation>]>} {
  func.func @loops(%x: tensor<8x16xbf16>, %n: index, %c: i1, %t: tensor<1x1xf32>, %state: !fp8.state) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    scf.for %i = %c0 to %n step %c1 {
      %s, %si = fp8.read_scale %state[%c0] : tensor<1x1xf32>
      %0 = fp8.quantize %x scale(%s, %si : tensor<1x1xf32>, tensor<1x1xf32>) : tensor<8x16xbf16> -> !q
      %1 = fp8.amax %x block = [*, *] : tensor<8x16xbf16>
      fp8.record_amax %1, %state[%c0] : tensor<1x1xf32>
    }
    scf.while : () -> () {
      scf.condition(%c)
    } do {
      %s, %si = fp8.read_scale %state[%c1] : tensor<1x1xf32>
      %0 = fp8.quantize %x scale(%s, %si : tensor<1x1xf32>, tensor<1x1xf32>) : tensor<8x16xbf16> -> !q
      %1 = fp8.amax %x block = [*, *] : tensor<8x16xbf16>
      fp8.record_amax %1, %state[%c1] : tensor<1x1xf32>
      scf.yield
    }
    %2 = fp8.quantize %x scale(%t, %t : tensor<1x1xf32>, tensor<1x1xf32>) : tensor<8x16xbf16> -> !q
    return
  }
}
