// RUN: fp8-opt --fp8-set-target=chip=sm_90a --fp8-split-fusions %s 2>/dev/null | FileCheck %s --implicit-check-not="fp8.fusion("

// Factors that are taken from codes in another order wait for them.

// CHECK-LABEL: func.func @turned_factors
// CHECK-SAME:  %[[X:.+]]: tensor<4x256x32xf32>
// CHECK-NEXT:  %[[F:.+]]:2 = fp8.fusion(%[[X]]) {
// CHECK:         fp8.amax
// CHECK-NEXT:    fp8.compute_scale
// CHECK-NEXT:    fp8.yield
// CHECK:       = fp8.fusion(%[[X]], %[[F]]#0, %[[F]]#1) {
// CHECK:         fp8.quantize
func.func @turned_factors(%x: tensor<4x256x32xf32>) -> (tensor<256x4x32xf8E4M3FN>, tensor<256x4x1xf32>) {
  %0:2 = fp8.fusion(%x) {
  ^bb0(%a: tensor<4x256x32xf32>):
    %m = fp8.amax %a block = [1, 1, *] : tensor<4x256x32xf32>
    %s, %i = fp8.compute_scale %m format = f8E4M3FN scale_type = f32 : tensor<4x256x1xf32>
    %q = fp8.quantize %a scale(%s, %i : tensor<4x256x1xf32>, tensor<4x256x1xf32>) : tensor<4x256x32xf32> -> <4x256x32xf8E4M3FN, block = [1, 1, *], scale = f32>
    %t = fp8.transpose %q permutation = [1, 0, 2] : <4x256x32xf8E4M3FN, block = [1, 1, *], scale = f32>
    %c, %f = fp8.disassemble %t : <256x4x32xf8E4M3FN, block = [1, 1, *], scale = f32>
    fp8.yield %c, %f : tensor<256x4x32xf8E4M3FN>, tensor<256x4x1xf32>
  } : (tensor<4x256x32xf32>) -> (tensor<256x4x32xf8E4M3FN>, tensor<256x4x1xf32>)
  return %0#0, %0#1 : tensor<256x4x32xf8E4M3FN>, tensor<256x4x1xf32>
}
