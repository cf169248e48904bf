// RUN: fp8-opt %s | fp8-opt | FileCheck %s

!q = !fp8.scaled<2x?x8x128xf8E4M3FN, block = [*, *, *, *], scale = f32>
!k = !fp8.scaled<2x?x2x128xf8E4M3FN, block = [1, *, 1, *], scale = f32>

// CHECK-LABEL: @plain
// CHECK: fp8.attention_backward %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} scale = 1.250000e-01 :
// CHECK-SAME: tensor<1x16x4x32xbf16>, tensor<1x16x4x64xbf16>, tensor<1x24x2x64xbf16>, tensor<1x24x2x32xbf16>, tensor<1x4x16xf32>, tensor<1x4x16xf32>
// CHECK-SAME: -> tensor<1x16x4x64xbf16>, tensor<1x24x2x64xbf16>, tensor<1x24x2x32xbf16>
func.func @plain(%grad: tensor<1x16x4x32xbf16>, %q: tensor<1x16x4x64xbf16>, %k: tensor<1x24x2x64xbf16>, %v: tensor<1x24x2x32xbf16>, %rows: tensor<1x4x16xf32>) -> (tensor<1x16x4x64xbf16>, tensor<1x24x2x64xbf16>, tensor<1x24x2x32xbf16>) {
  %dq, %dk, %dv = fp8.attention_backward %grad, %q, %k, %v, %rows, %rows scale = 0.125
      : tensor<1x16x4x32xbf16>, tensor<1x16x4x64xbf16>, tensor<1x24x2x64xbf16>, tensor<1x24x2x32xbf16>, tensor<1x4x16xf32>, tensor<1x4x16xf32>
      -> tensor<1x16x4x64xbf16>, tensor<1x24x2x64xbf16>, tensor<1x24x2x32xbf16>
  return %dq, %dk, %dv : tensor<1x16x4x64xbf16>, tensor<1x24x2x64xbf16>, tensor<1x24x2x32xbf16>
}

// CHECK-LABEL: @order
// CHECK: scale = 5.000000e-01 :
// CHECK: scale = 5.000000e-01 order = any {my.note} :
func.func @order(%q: tensor<1x16x4x64xbf16>, %rows: tensor<1x4x16xf32>) -> (tensor<1x16x4x64xbf16>, tensor<1x16x4x64xbf16>) {
  %0:3 = fp8.attention_backward %q, %q, %q, %q, %rows, %rows scale = 0.5 order = deterministic
      : tensor<1x16x4x64xbf16>, tensor<1x16x4x64xbf16>, tensor<1x16x4x64xbf16>, tensor<1x16x4x64xbf16>, tensor<1x4x16xf32>, tensor<1x4x16xf32>
      -> tensor<1x16x4x64xbf16>, tensor<1x16x4x64xbf16>, tensor<1x16x4x64xbf16>
  %1:3 = fp8.attention_backward %q, %q, %q, %q, %rows, %rows scale = 0.5 order = any {my.note}
      : tensor<1x16x4x64xbf16>, tensor<1x16x4x64xbf16>, tensor<1x16x4x64xbf16>, tensor<1x16x4x64xbf16>, tensor<1x4x16xf32>, tensor<1x4x16xf32>
      -> tensor<1x16x4x64xbf16>, tensor<1x16x4x64xbf16>, tensor<1x16x4x64xbf16>
  return %0#0, %1#0 : tensor<1x16x4x64xbf16>, tensor<1x16x4x64xbf16>
}

// CHECK-LABEL: @all
// CHECK: scale = 5.000000e-01 window = [*, 0] bottom_right {my.note} :
func.func @all(%grad: tensor<2x?x8x128xf16>, %q: !q, %k: !k, %rows: tensor<2x8x?xf32>) -> tensor<2x?x8x128xf16> {
  %dq, %dk, %dv = fp8.attention_backward %grad, %q, %k, %k, %rows, %rows scale = 0.5 window = [*, 0] bottom_right
      layout = bshd {my.note} : tensor<2x?x8x128xf16>, !q, !k, !k, tensor<2x8x?xf32>, tensor<2x8x?xf32>
      -> tensor<2x?x8x128xf16>, tensor<2x?x2x128xf16>, tensor<2x?x2x128xf16>
  return %dq : tensor<2x?x8x128xf16>
}

// CHECK-LABEL: @ranges
// CHECK: key_ranges(%{{.*}} : tensor<1x?x2xi32>) scale = 5.000000e-01 cap = 2.000000e+00 :
func.func @ranges(%q: tensor<1x16x4x64xbf16>, %rows: tensor<1x4x16xf32>, %ranges: tensor<1x?x2xi32>) -> tensor<1x16x4x64xbf16> {
  %0:3 = fp8.attention_backward %q, %q, %q, %q, %rows, %rows key_ranges(%ranges : tensor<1x?x2xi32>) scale = 0.5 cap = 2.0
      : tensor<1x16x4x64xbf16>, tensor<1x16x4x64xbf16>, tensor<1x16x4x64xbf16>, tensor<1x16x4x64xbf16>, tensor<1x4x16xf32>, tensor<1x4x16xf32>
      -> tensor<1x16x4x64xbf16>, tensor<1x16x4x64xbf16>, tensor<1x16x4x64xbf16>
  return %0#0 : tensor<1x16x4x64xbf16>
}

// CHECK-LABEL: @dropout
// CHECK: dropout(%{{.*}} : tensor<2xi64>) rate = 1.000000e-01 scale = 5.000000e-01 :
func.func @dropout(%q: tensor<1x16x4x64xbf16>, %rows: tensor<1x4x16xf32>, %state: tensor<2xi64>) -> tensor<1x16x4x64xbf16> {
  %0:3 = fp8.attention_backward %q, %q, %q, %q, %rows, %rows dropout(%state : tensor<2xi64>) rate = 0.1 scale = 0.5
      : tensor<1x16x4x64xbf16>, tensor<1x16x4x64xbf16>, tensor<1x16x4x64xbf16>, tensor<1x16x4x64xbf16>, tensor<1x4x16xf32>, tensor<1x4x16xf32>
      -> tensor<1x16x4x64xbf16>, tensor<1x16x4x64xbf16>, tensor<1x16x4x64xbf16>
  return %0#0 : tensor<1x16x4x64xbf16>
}
