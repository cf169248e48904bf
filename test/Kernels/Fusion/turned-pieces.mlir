// RUN: fp8-opt --fp8-set-target=chip=sm_90a --fp8-select-kernels --fp8-build-kernels %s -o %t.mlir
// RUN: fp8-translate --kernels-to-ptx %t.mlir | FileCheck %s

// A transposed copy is stored in the widest pieces that its rows start at
// multiples of, and neighbouring threads store neighbours.

!one = tensor<1x1xf32>

// CHECK-LABEL: .entry fp8_fusion_sm90a_both
// CHECK:       bar.sync
// CHECK:       ld.shared.v4.b32
// CHECK:       st.global.v4.b32
// CHECK-NOT:   ld.shared.v2.b32
// CHECK:       ret;
func.func @sixteens(%x: tensor<160x256xbf16>, %s: !one, %si: !one) -> tensor<256x160xf8E4M3FN> {
  %0 = fp8.fusion(%x, %s, %si) {
  ^bb0(%a: tensor<160x256xbf16>, %f: !one, %fi: !one):
    %q = fp8.quantize %a scale(%f, %fi : !one, !one) : tensor<160x256xbf16> -> !fp8.scaled<160x256xf8E4M3FN, block = [*, *], scale = f32>
    %t = fp8.transpose %q permutation = [1, 0] : !fp8.scaled<160x256xf8E4M3FN, block = [*, *], scale = f32>
    %p, %sc = fp8.disassemble %t : !fp8.scaled<256x160xf8E4M3FN, block = [*, *], scale = f32>
    fp8.yield %p : tensor<256x160xf8E4M3FN>
  } : (tensor<160x256xbf16>, !one, !one) -> tensor<256x160xf8E4M3FN>
  return %0 : tensor<256x160xf8E4M3FN>
}

// CHECK-LABEL: .entry fp8_fusion_sm90a_both
// CHECK:       bar.sync
// CHECK-NOT:   st.global.v4.b32
// CHECK:       ld.shared.v2.b32
// CHECK:       st.global.v2.b32
// CHECK-NOT:   st.global.b8
// CHECK:       ret;
func.func @eights(%x: tensor<168x256xbf16>, %s: !one, %si: !one) -> tensor<256x168xf8E4M3FN> {
  %0 = fp8.fusion(%x, %s, %si) {
  ^bb0(%a: tensor<168x256xbf16>, %f: !one, %fi: !one):
    %q = fp8.quantize %a scale(%f, %fi : !one, !one) : tensor<168x256xbf16> -> !fp8.scaled<168x256xf8E4M3FN, block = [*, *], scale = f32>
    %t = fp8.transpose %q permutation = [1, 0] : !fp8.scaled<168x256xf8E4M3FN, block = [*, *], scale = f32>
    %p, %sc = fp8.disassemble %t : !fp8.scaled<256x168xf8E4M3FN, block = [*, *], scale = f32>
    fp8.yield %p : tensor<256x168xf8E4M3FN>
  } : (tensor<168x256xbf16>, !one, !one) -> tensor<256x168xf8E4M3FN>
  return %0 : tensor<256x168xf8E4M3FN>
}

// CHECK-LABEL: .entry fp8_fusion_sm90a_both
// CHECK:       bar.sync
// CHECK-NOT:   st.global.v2.b32
// CHECK:       ld.shared.b8
// CHECK:       st.global.b8
// CHECK:       ret;
func.func @ones(%x: tensor<161x256xbf16>, %s: !one, %si: !one) -> tensor<256x161xf8E4M3FN> {
  %0 = fp8.fusion(%x, %s, %si) {
  ^bb0(%a: tensor<161x256xbf16>, %f: !one, %fi: !one):
    %q = fp8.quantize %a scale(%f, %fi : !one, !one) : tensor<161x256xbf16> -> !fp8.scaled<161x256xf8E4M3FN, block = [*, *], scale = f32>
    %t = fp8.transpose %q permutation = [1, 0] : !fp8.scaled<161x256xf8E4M3FN, block = [*, *], scale = f32>
    %p, %sc = fp8.disassemble %t : !fp8.scaled<256x161xf8E4M3FN, block = [*, *], scale = f32>
    fp8.yield %p : tensor<256x161xf8E4M3FN>
  } : (tensor<161x256xbf16>, !one, !one) -> tensor<256x161xf8E4M3FN>
  return %0 : tensor<256x161xf8E4M3FN>
}
