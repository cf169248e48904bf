// RUN: fp8-opt %s --fp8-set-target=chip=sm_90a --fp8-split-fusions --fp8-fuse-scales | FileCheck %s

!x = tensor<4096x512xbf16>
!s = tensor<1x512xf32>

// Columns are measured of 128 rows each, and then of these: the second fusion has
// whole columns, and computes their scales. Nobody else needs the amaxes.

// CHECK-LABEL: func.func @columns(
// CHECK:       %[[PARTS:.+]] = fp8.fusion(
// CHECK:         -> tensor<32x512xf32>
// CHECK:       %[[S:.+]]:2 = fp8.fusion(%[[PARTS]]) {
// CHECK:         %[[A:.+]] = fp8.amax
// CHECK-NEXT:    %[[SCALE:.+]], %[[INV:.+]] = fp8.compute_scale %[[A]]
// CHECK-NEXT:    fp8.yield %[[SCALE]], %[[INV]]
// CHECK:       return %[[S]]#0, %[[S]]#1
func.func @columns(%x: !x) -> (!s, !s) {
  %a = fp8.fusion(%x) {
  ^bb0(%in: !x):
    %0 = fp8.amax %in block = [*, 1] : !x
    fp8.yield %0 : !s
  } : (!x) -> !s
  %s, %si = fp8.compute_scale %a format = f8E4M3FN scale_type = f32 : !s
  return %s, %si : !s, !s
}

// What somebody else needs is a result still.

// CHECK-LABEL: func.func @needed(
// CHECK:       %[[S:.+]]:2 = fp8.fusion(
// CHECK:         fp8.yield %{{.+}}, %{{.+}} : tensor<1x512xf32>, tensor<1x512xf32>
// CHECK:       return %[[S]]#1, %[[S]]#0
func.func @needed(%x: tensor<64x512xbf16>) -> (!s, !s) {
  %a = fp8.fusion(%x) {
  ^bb0(%in: tensor<64x512xbf16>):
    %0 = fp8.amax %in block = [*, 1] : tensor<64x512xbf16>
    fp8.yield %0 : !s
  } : (tensor<64x512xbf16>) -> !s
  %s, %si = fp8.compute_scale %a format = f8E4M3FN scale_type = f32 : !s
  return %s, %a : !s, !s
}

// The scale of a whole tensor is known after the fusion.

// CHECK-LABEL: func.func @tensor(
// CHECK:       %[[A:.+]] = fp8.fusion(
// CHECK:       fp8.compute_scale %[[A]]
func.func @tensor(%x: !x) -> tensor<1x1xf32> {
  %a = fp8.fusion(%x) {
  ^bb0(%in: !x):
    %0 = fp8.amax %in block = [*, *] : !x
    fp8.yield %0 : tensor<1x1xf32>
  } : (!x) -> tensor<1x1xf32>
  %s, %si = fp8.compute_scale %a format = f8E4M3FN scale_type = f32 : tensor<1x1xf32>
  return %s : tensor<1x1xf32>
}
