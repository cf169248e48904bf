// RUN: fp8-opt %s --fp8-form-fusions | FileCheck %s

!x = tensor<64x256xbf16>
!one = tensor<1x1xf32>
!rows = !fp8.scaled<64x256xf8E4M3FN, block = [1, 128], scale = f32>
!turned = !fp8.scaled<256x64xf8E4M3FN, block = [128, 1], scale = f32>
!whole = !fp8.scaled<64x256xf8E4M3FN, block = [*, *], scale = f32>

// Parts that are read of a scaled value that is taken apart are written.

// CHECK-LABEL: func.func @factors_of_transpose
// CHECK-SAME:  %[[X:.+]]: tensor<64x256xbf16>
// CHECK:       %[[S:.+]]:2 = fp8.fusion(%[[X]]) {
// CHECK:         %[[Q:.+]] = fp8.quantize
// CHECK:         %[[T:.+]] = fp8.transpose %[[Q]]
// CHECK:         fp8.yield %{{.+}}, %{{.+}} : tensor<64x256xf8E4M3FN>, tensor<2x64xf32>
// CHECK-NOT:   fp8.assemble
// CHECK-NOT:   fp8.disassemble
// CHECK:       return %[[S]]#0, %[[S]]#1
func.func @factors_of_transpose(%x: !x) -> (tensor<64x256xf8E4M3FN>, tensor<2x64xf32>) {
  %a = fp8.amax %x block = [1, 128] : !x
  %s, %si = fp8.compute_scale %a format = f8E4M3FN scale_type = f32 : tensor<64x2xf32>
  %q = fp8.quantize %x scale(%s, %si : tensor<64x2xf32>, tensor<64x2xf32>) : !x -> !rows
  %t = fp8.transpose %q permutation = [1, 0] : !rows
  %p, %f = fp8.disassemble %q : !rows
  %tp, %tf = fp8.disassemble %t : !turned
  return %p, %tf : tensor<64x256xf8E4M3FN>, tensor<2x64xf32>
}

// What is read as a whole keeps all of it.

// CHECK-LABEL: func.func @kept
// CHECK:       %[[S:.+]]:2 = fp8.fusion
// CHECK:         fp8.yield %{{.+}}, %{{.+}} : tensor<64x256xf8E4M3FN>, tensor<64x2xf32>
// CHECK:       %[[Q:.+]] = fp8.assemble %[[S]]#0, %[[S]]#1
// CHECK:       return %[[Q]], %[[S]]#0
func.func @kept(%x: !x) -> (!rows, tensor<64x256xf8E4M3FN>) {
  %a = fp8.amax %x block = [1, 128] : !x
  %s, %si = fp8.compute_scale %a format = f8E4M3FN scale_type = f32 : tensor<64x2xf32>
  %q = fp8.quantize %x scale(%s, %si : tensor<64x2xf32>, tensor<64x2xf32>) : !x -> !rows
  %p, %f = fp8.disassemble %q : !rows
  return %q, %p : !rows, tensor<64x256xf8E4M3FN>
}

// Where no part that is read is computed, there is no fusion.

// CHECK-LABEL: func.func @factor_alone
// CHECK-NOT:   fp8.fusion
// CHECK:       return %arg1
func.func @factor_alone(%x: !x, %si: !one, %s: !one) -> !one {
  %q = fp8.quantize %x scale(%s, %si : !one, !one) : !x -> !whole
  %p, %f = fp8.disassemble %q : !whole
  return %f : !one
}
