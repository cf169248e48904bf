// RUN: fp8-opt %s | fp8-opt | FileCheck %s

!q = !fp8.scaled<2x?x8x128xf8E4M3FN, block = [*, *, *, *], scale = f32>
!k = !fp8.scaled<2x?x2x128xf8E4M3FN, block = [1, *, 1, *], scale = f32>
!v = !fp8.scaled<2x?x2x64xf8E5M2, block = [1, *, 1, *], scale = f32>

// CHECK-LABEL: @plain
// CHECK: fp8.attention %{{.*}}, %{{.*}}, %{{.*}} scale = 1.250000e-01
// CHECK-SAME: : tensor<1x16x4x64xbf16>, tensor<1x24x2x64xbf16>, tensor<1x24x2x64xbf16> -> tensor<1x16x4x64xbf16>
func.func @plain(%q: tensor<1x16x4x64xbf16>, %k: tensor<1x24x2x64xbf16>, %v: tensor<1x24x2x64xbf16>) -> tensor<1x16x4x64xbf16> {
  %0 = fp8.attention %q, %k, %v scale = 0.125
      : tensor<1x16x4x64xbf16>, tensor<1x24x2x64xbf16>, tensor<1x24x2x64xbf16> -> tensor<1x16x4x64xbf16>
  return %0 : tensor<1x16x4x64xbf16>
}

// CHECK-LABEL: @all
// CHECK: fp8.attention %{{.*}}, %{{.*}}, %{{.*}} mask(%{{.*}} : tensor<8x1x?xi1>) scale = 5.000000e-01 window = [*, 0] bottom_right
// CHECK-SAME: accumulate = fast p_scale = 1.280000e+02 {my.note}
// CHECK-SAME: -> tensor<2x?x8x64xbf16>, tensor<2x8x?xf32>
func.func @all(%q: !q, %k: !k, %v: !v, %mask: tensor<8x1x?xi1>) -> (tensor<2x?x8x64xbf16>, tensor<2x8x?xf32>) {
  %0, %1 = fp8.attention %q, %k, %v mask(%mask : tensor<8x1x?xi1>) scale = 0.5 window = [*, 0] bottom_right
      layout = bshd accumulate = fast p_scale = 128.0 {my.note} : !q, !k, !v -> tensor<2x?x8x64xbf16>, tensor<2x8x?xf32>
  return %0, %1 : tensor<2x?x8x64xbf16>, tensor<2x8x?xf32>
}

// CHECK-LABEL: @heads_first
// CHECK: window = [4095, *] layout = bhsd : tensor<1x4x16x64xf16>
func.func @heads_first(%q: tensor<1x4x16x64xf16>) -> tensor<1x4x16x64xf16> {
  %0 = fp8.attention %q, %q, %q scale = 1.0 window = [4095, *] layout = bhsd
      : tensor<1x4x16x64xf16>, tensor<1x4x16x64xf16>, tensor<1x4x16x64xf16> -> tensor<1x4x16x64xf16>
  return %0 : tensor<1x4x16x64xf16>
}

// CHECK-LABEL: @key_lengths
// CHECK: fp8.attention %{{.*}}, %{{.*}}, %{{.*}} key_lengths(%{{.*}} : tensor<?xi32>) scale = 1.000000e+00 window = [*, 0] bottom_right
func.func @key_lengths(%q: tensor<?x16x4x64xf16>, %lengths: tensor<?xi32>) -> tensor<?x16x4x64xf16> {
  %0 = fp8.attention %q, %q, %q key_lengths(%lengths : tensor<?xi32>) scale = 1.0 window = [*, 0] bottom_right
      : tensor<?x16x4x64xf16>, tensor<?x16x4x64xf16>, tensor<?x16x4x64xf16> -> tensor<?x16x4x64xf16>
  return %0 : tensor<?x16x4x64xf16>
}

// CHECK-LABEL: @pages
// CHECK: fp8.attention %{{.*}}, %{{.*}}, %{{.*}} key_lengths(%{{.*}} : tensor<2xi32>) page_table(%{{.*}} : tensor<2x?xi32>) scale
func.func @pages(%q: tensor<2x1x4x64xf16>, %k: tensor<?x16x4x64xf16>, %lengths: tensor<2xi32>, %table: tensor<2x?xi32>) -> tensor<2x1x4x64xf16> {
  %0 = fp8.attention %q, %k, %k key_lengths(%lengths : tensor<2xi32>) page_table(%table : tensor<2x?xi32>) scale = 1.0
      : tensor<2x1x4x64xf16>, tensor<?x16x4x64xf16>, tensor<?x16x4x64xf16> -> tensor<2x1x4x64xf16>
  return %0 : tensor<2x1x4x64xf16>
}

// CHECK-LABEL: @keys
// CHECK: fp8.attention %{{.*}}, %{{.*}}, %{{.*}} key_starts(%{{.*}} : tensor<2xi32>) key_ranges(%{{.*}} : tensor<2x?x2xi32>) sinks(%{{.*}} : tensor<4xf32>) scale
func.func @keys(%q: tensor<2x?x4x64xf16>, %starts: tensor<2xi32>, %ranges: tensor<2x?x2xi32>, %sinks: tensor<4xf32>) -> tensor<2x?x4x64xf16> {
  %0 = fp8.attention %q, %q, %q key_starts(%starts : tensor<2xi32>) key_ranges(%ranges : tensor<2x?x2xi32>)
      sinks(%sinks : tensor<4xf32>) scale = 1.0
      : tensor<2x?x4x64xf16>, tensor<2x?x4x64xf16>, tensor<2x?x4x64xf16> -> tensor<2x?x4x64xf16>
  return %0 : tensor<2x?x4x64xf16>
}

// CHECK-LABEL: @capped
// CHECK: mask(%{{.*}} : tensor<16xf32>) scale = 1.000000e+00 cap = 3.000000e+01 window = [*, 0] :
func.func @capped(%q: tensor<2x16x4x64xf16>, %mask: tensor<16xf32>) -> tensor<2x16x4x64xf16> {
  %0 = fp8.attention %q, %q, %q mask(%mask : tensor<16xf32>) scale = 1.0 cap = 30.0 window = [*, 0]
      : tensor<2x16x4x64xf16>, tensor<2x16x4x64xf16>, tensor<2x16x4x64xf16> -> tensor<2x16x4x64xf16>
  return %0 : tensor<2x16x4x64xf16>
}

// CHECK-LABEL: @dropout
// CHECK: sinks(%{{.*}} : tensor<4xf32>) dropout(%{{.*}} : tensor<2xi64>) rate = 1.000000e-01 scale = 1.000000e+00 :
func.func @dropout(%q: tensor<2x16x4x64xf16>, %sinks: tensor<4xf32>, %state: tensor<2xi64>) -> tensor<2x16x4x64xf16> {
  %0 = fp8.attention %q, %q, %q sinks(%sinks : tensor<4xf32>) dropout(%state : tensor<2xi64>) rate = 0.1 scale = 1.0
      : tensor<2x16x4x64xf16>, tensor<2x16x4x64xf16>, tensor<2x16x4x64xf16> -> tensor<2x16x4x64xf16>
  return %0 : tensor<2x16x4x64xf16>
}
