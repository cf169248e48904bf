// RUN: fp8-opt %s --cse | FileCheck %s
// RUN: fp8-opt %s --cse --canonicalize | FileCheck %s --check-prefix=CANONICAL
// RUN: fp8-opt %s --fp8-pipeline="recipe=none target=sm_90a to=buffers" | FileCheck %s --check-prefix=BUFFERS

// One of equal products is left, whatever yields them, in groups, too.

// CHECK-LABEL: func.func @three
// CHECK:       %[[R:.+]]:3 = fp8.sibling_matmuls {
// CHECK:         %[[G:.+]] = fp8.matmul %arg0, %arg1
// CHECK:         %[[U:.+]] = fp8.matmul %arg0, %arg2
// CHECK:         fp8.yield %[[G]], %[[U]], %[[G]]
// CHECK:       return %[[R]]#0, %[[R]]#1, %[[R]]#2

// CANONICAL-LABEL: func.func @three
// CANONICAL:       %[[R:.+]]:2 = fp8.sibling_matmuls {
// CANONICAL:       return %[[R]]#0, %[[R]]#1, %[[R]]#0

// BUFFERS-LABEL: func.func @three
// BUFFERS-COUNT-2: fp8_gpu.launch
// BUFFERS-NOT: fp8_gpu.launch
// BUFFERS: return
func.func @three(%x: tensor<64x64xbf16>, %w: tensor<64x64xbf16>, %v: tensor<128x64xbf16>)
    -> (tensor<64x64xf32>, tensor<64x128xf32>, tensor<64x64xf32>) {
  %0:3 = fp8.sibling_matmuls {
    %g = fp8.matmul %x, %w accumulate = fast : tensor<64x64xbf16>, tensor<64x64xbf16> -> tensor<64x64xf32>
    %u = fp8.matmul %x, %v accumulate = fast : tensor<64x64xbf16>, tensor<128x64xbf16> -> tensor<64x128xf32>
    %h = fp8.matmul %x, %w accumulate = fast : tensor<64x64xbf16>, tensor<64x64xbf16> -> tensor<64x64xf32>
    fp8.yield %g, %u, %h : tensor<64x64xf32>, tensor<64x128xf32>, tensor<64x64xf32>
  } : tensor<64x64xf32>, tensor<64x128xf32>, tensor<64x64xf32>
  return %0#0, %0#1, %0#2 : tensor<64x64xf32>, tensor<64x128xf32>, tensor<64x64xf32>
}

// CHECK-LABEL: func.func @two
// CHECK:       fp8.sibling_matmuls
// CHECK:         %[[G:.+]] = fp8.matmul
// CHECK-NEXT:    fp8.yield %[[G]], %[[G]]

// CANONICAL-LABEL: func.func @two
// CANONICAL-NOT:   fp8.sibling_matmuls
// CANONICAL:       %[[G:.+]] = fp8.matmul
// CANONICAL-NEXT:  return %[[G]], %[[G]]
func.func @two(%x: tensor<64x64xbf16>, %w: tensor<64x64xbf16>) -> (tensor<64x64xf32>, tensor<64x64xf32>) {
  %0:2 = fp8.sibling_matmuls {
    %g = fp8.matmul %x, %w accumulate = fast : tensor<64x64xbf16>, tensor<64x64xbf16> -> tensor<64x64xf32>
    %h = fp8.matmul %x, %w accumulate = fast : tensor<64x64xbf16>, tensor<64x64xbf16> -> tensor<64x64xf32>
    fp8.yield %g, %h : tensor<64x64xf32>, tensor<64x64xf32>
  } : tensor<64x64xf32>, tensor<64x64xf32>
  return %0#0, %0#1 : tensor<64x64xf32>, tensor<64x64xf32>
}
