// RUN: fp8-opt %s | fp8-opt | FileCheck %s

!x = !fp8.scaled<32x128xf8E4M3FN, block = [*, *], scale = f32>
!w = !fp8.scaled<64x128xf8E4M3FN, block = [*, *], scale = f32>
!v = !fp8.scaled<16x128xf8E4M3FN, block = [*, *], scale = f32>

// CHECK-LABEL: func.func @of_a
// CHECK:       %[[R:.+]]:2 = fp8.sibling_matmuls {
// CHECK:         %[[G:.+]] = fp8.matmul %arg0, %arg1
// CHECK:         %[[U:.+]] = fp8.matmul %arg0, %arg2
// CHECK:         fp8.yield %[[G]], %[[U]] : tensor<32x64xbf16>, tensor<32x16xbf16>
// CHECK:       } : tensor<32x64xbf16>, tensor<32x16xbf16>
// CHECK:       return %[[R]]#0, %[[R]]#1
func.func @of_a(%x: !x, %w: !w, %v: !v) -> (tensor<32x64xbf16>, tensor<32x16xbf16>) {
  %0:2 = fp8.sibling_matmuls {
    %g = fp8.matmul %x, %w : !x, !w -> tensor<32x64xbf16>
    %u = fp8.matmul %x, %v : !x, !v -> tensor<32x16xbf16>
    fp8.yield %g, %u : tensor<32x64xbf16>, tensor<32x16xbf16>
  } : tensor<32x64xbf16>, tensor<32x16xbf16>
  return %0#0, %0#1 : tensor<32x64xbf16>, tensor<32x16xbf16>
}

// CHECK-LABEL: func.func @of_b
// CHECK:       fp8.sibling_matmuls {
func.func @of_b(%x: !x, %y: !v, %w: !w) -> (tensor<32x64xbf16>, tensor<16x64xbf16>) {
  %0:2 = fp8.sibling_matmuls {
    %g = fp8.matmul %x, %w : !x, !w -> tensor<32x64xbf16>
    %u = fp8.matmul %y, %w : !v, !w -> tensor<16x64xbf16>
    fp8.yield %g, %u : tensor<32x64xbf16>, tensor<16x64xbf16>
  } : tensor<32x64xbf16>, tensor<16x64xbf16>
  return %0#0, %0#1 : tensor<32x64xbf16>, tensor<16x64xbf16>
}

// What the second one's epilogue alone reads is no result.

// CHECK-LABEL: func.func @pair
// CHECK:       %[[R:.+]] = fp8.sibling_matmuls {
// CHECK:         %[[G:.+]] = fp8.matmul %arg0, %arg1
// CHECK:         %[[U:.+]] = fp8.matmul %arg0, %arg2 epilogue(%[[G]]
// CHECK:         fp8.yield %[[U]] : tensor<32x64xbf16>
// CHECK:       return %[[R]]
func.func @pair(%x: !x, %w: !w, %v: !w) -> tensor<32x64xbf16> {
  %0 = fp8.sibling_matmuls {
    %g = fp8.matmul %x, %w : !x, !w -> tensor<32x64xbf16>
    %u = fp8.matmul %x, %v epilogue(%g : tensor<32x64xbf16>) {
    ^bb0(%acc: f32, %e: bf16):
      %1 = arith.extf %e : bf16 to f32
      %2 = arith.mulf %acc, %1 : f32
      %3 = arith.truncf %2 : f32 to bf16
      fp8.yield %3 : bf16
    } : !x, !w -> tensor<32x64xbf16>
    fp8.yield %u : tensor<32x64xbf16>
  } : tensor<32x64xbf16>
  return %0 : tensor<32x64xbf16>
}
