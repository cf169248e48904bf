// RUN: fp8-opt %s 2>%t.err | FileCheck %s
// RUN: FileCheck %s --check-prefix=WARNING < %t.err
// RUN: fp8-opt %s 2>/dev/null | fp8-opt 2>&1 | FileCheck %s

// What an earlier version wrote is read, with a warning, and written in the words
// of today.

// WARNING: former-names.mlir:[[#@LINE+5]]:8: warning: 'fp8.stream' is called 'fp8.fusion' now
// CHECK-NOT:   warning
// CHECK-LABEL: @stream
// CHECK:       fp8.fusion(%{{.+}}) {
func.func @stream(%x: tensor<32x64xbf16>) -> tensor<1x1xf32> {
  %0 = fp8.stream(%x) {
  ^bb0(%1: tensor<32x64xbf16>):
    %2 = fp8.amax %1 block = [*, *] : tensor<32x64xbf16>
    fp8.yield %2 : tensor<1x1xf32>
  } : (tensor<32x64xbf16>) -> tensor<1x1xf32>
  return %0 : tensor<1x1xf32>
}

// WARNING: warning: 'fp8.matmul_group' is called 'fp8.sibling_matmuls' now
// CHECK-LABEL: @matmul_group
// CHECK:       fp8.sibling_matmuls {
func.func @matmul_group(%x: tensor<32x128xbf16>, %v: tensor<64x128xbf16>, %w: tensor<64x128xbf16>)
    -> (tensor<32x64xbf16>, tensor<32x64xbf16>) {
  %gate, %up = fp8.matmul_group {
    %0 = fp8.matmul %x, %v accumulate = fast
        : tensor<32x128xbf16>, tensor<64x128xbf16> -> tensor<32x64xbf16>
    %1 = fp8.matmul %x, %w accumulate = fast
        : tensor<32x128xbf16>, tensor<64x128xbf16> -> tensor<32x64xbf16>
    fp8.yield %0, %1 : tensor<32x64xbf16>, tensor<32x64xbf16>
  } : tensor<32x64xbf16>, tensor<32x64xbf16>
  return %gate, %up : tensor<32x64xbf16>, tensor<32x64xbf16>
}

// WARNING: warning: 'unspecified_rest' is called 'undef_padding' now
// WARNING: warning: 'expected_count' is called 'expected_m' now
// CHECK-LABEL: @grouped
// CHECK:       counts(%{{.+}} : tensor<4xi32>) undef_padding accumulate = fast {expected_m = 8 : i64} :
func.func @grouped(%x: tensor<4x32x128xbf16>, %w: tensor<4x64x128xbf16>, %counts: tensor<4xi32>)
    -> tensor<4x32x64xbf16> {
  %0 = fp8.grouped_matmul %x, %w counts(%counts : tensor<4xi32>) unspecified_rest accumulate = fast
      {expected_count = 8 : i64} : tensor<4x32x128xbf16>, tensor<4x64x128xbf16> -> tensor<4x32x64xbf16>
  return %0 : tensor<4x32x64xbf16>
}

// WARNING: warning: 'tensor_core_sums' is called 'tensor_core_accumulation' now
// CHECK-LABEL: @accumulation
// CHECK:       {tensor_core_accumulation = array<i64: 0, 0, 128, 1, 1, 0>}
func.func @accumulation(%a: tensor<32x128xbf16>, %b: tensor<64x128xbf16>) -> tensor<32x64xf32> {
  %0 = fp8.matmul %a, %b accumulate = fast {tensor_core_sums = array<i64: 0, 0, 128, 1, 1, 0>}
      : tensor<32x128xbf16>, tensor<64x128xbf16> -> tensor<32x64xf32>
  return %0 : tensor<32x64xf32>
}
