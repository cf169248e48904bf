// RUN: fp8-opt %s --fp8-set-target=chip=sm_89 --fp8-select-kernels --split-input-file | FileCheck %s
// RUN: fp8-opt %s --fp8-set-target=chip=sm_120a --fp8-select-kernels --split-input-file | FileCheck %s

// Invariant attention has one tile of keys, whatever hides keys.

!q = tensor<2x?x32x128xbf16>
!k = tensor<2x?x8x128xbf16>
// CHECK-LABEL: @prompt
// CHECK: fp8.attention
// CHECK-SAME: tile_k = 32
func.func @prompt(%q: !q, %k: !k, %v: !k) -> !q attributes {fp8.invariant} {
  %0 = fp8.attention %q, %k, %v scale = 0.088 window = [*, 0] : !q, !k, !k -> !q
  return %0 : !q
}

// -----

!q = tensor<2x1x32x128xbf16>
!k = tensor<2x?x8x128xbf16>
!m = tensor<2x1x1x?xi1>
// CHECK-LABEL: @token
// CHECK: fp8.attention
// CHECK-SAME: tile_k = 32
func.func @token(%q: !q, %k: !k, %v: !k, %m: !m) -> !q attributes {fp8.invariant} {
  %0 = fp8.attention %q, %k, %v mask(%m : !m) scale = 0.088 : !q, !k, !k -> !q
  return %0 : !q
}

// -----

!q = tensor<2x?x32x128xbf16>
!k = tensor<2x?x8x128xbf16>
// CHECK-LABEL: @free
// CHECK: fp8.attention
// CHECK-SAME: tile_k = 64
func.func @free(%q: !q, %k: !k, %v: !k) -> !q {
  %0 = fp8.attention %q, %k, %v scale = 0.088 window = [*, 0] : !q, !k, !k -> !q
  return %0 : !q
}
