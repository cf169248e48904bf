// RUN: fp8-opt %s --fp8-launch-kernels | FileCheck %s
// RUN: fp8-opt %s --fp8-launch-kernels --convert-fp8-to-linalg --one-shot-bufferize="bufferize-function-boundaries function-boundary-type-conversion=identity-layout-map" | FileCheck %s --check-prefix=BUFFERS

!a = !fp8.scaled<?x128xf8E4M3FN, block = [*, *], scale = f32>
!b = !fp8.scaled<64x128xf8E4M3FN, block = [*, *], scale = f32>

// A matmul without a kernel stays.

// CHECK-LABEL: func.func @none
// CHECK:       fp8.matmul
func.func @none(%a: !a, %b: !b) -> tensor<?x64xbf16> {
  %0 = fp8.matmul %a, %b : !a, !b -> tensor<?x64xbf16>
  return %0 : tensor<?x64xbf16>
}

// One with a kernel becomes its launch; what the epilogue uses goes along.

// CHECK-LABEL: func.func @launch
// CHECK-SAME:    %[[BIAS:[a-z0-9]+]]: tensor<64xbf16>, %[[S:[a-z0-9]+]]: f32
// CHECK:       %[[A:.+]], %[[A_INV:.+]] = fp8.disassemble
// CHECK:       %[[B:.+]], %[[B_INV:.+]] = fp8.disassemble
// CHECK:       %[[M:.+]] = tensor.dim %[[A]]
// CHECK:       %[[D:.+]] = tensor.empty(%[[M]]) : tensor<?x64xbf16>
// CHECK:       %[[Y:.+]] = fp8.launch_matmul @fp8_kernels::@k a(%[[A]], %[[A_INV]] :
// CHECK-SAME:    b(%[[B]], %[[B_INV]] :
// CHECK-SAME:    operands(%[[BIAS]] :
// CHECK-SAME:    captures(%[[S]] : f32) outs(%[[D]] :
// CHECK:       return %[[Y]]

// The result is written where it is returned from: there is no copy.

// BUFFERS-LABEL: func.func @launch
// BUFFERS:       %[[D:.+]] = memref.alloc
// BUFFERS-NOT:   memref.copy
// BUFFERS:       fp8.launch_matmul {{.*}} outs(%[[D]] : memref<?x64xbf16>)
// BUFFERS-NOT:   memref.copy
// BUFFERS:       return %[[D]]
func.func @launch(%a: !a, %b: !b, %bias: tensor<64xbf16>, %s: f32) -> tensor<?x64xbf16> {
  %0 = fp8.matmul %a, %b epilogue(%bias : tensor<64xbf16>) {
  ^bb0(%acc: f32, %b0: bf16):
    %1 = arith.extf %b0 : bf16 to f32
    %2 = arith.addf %acc, %1 : f32
    %3 = arith.mulf %2, %s : f32
    %4 = arith.truncf %3 : f32 to bf16
    fp8.yield %4 : bf16
  } {fp8.kernel = @fp8_kernels::@k} : !a, !b -> tensor<?x64xbf16>
  return %0 : tensor<?x64xbf16>
}

// An amax begins as 0.

// CHECK-LABEL: func.func @amax
// CHECK:       %[[ZERO:.+]] = linalg.fill ins(%cst{{.*}} : f32) outs(%{{.*}} : tensor<1x1xf32>)
// CHECK:       fp8.launch_matmul {{.*}} outs(%{{.*}}, %[[ZERO]] : tensor<?x64xf32>, tensor<1x1xf32>)
func.func @amax(%a: !a, %b: !b) -> tensor<1x1xf32> {
  %0, %1 = fp8.matmul %a, %b epilogue {
  ^bb0(%acc: f32):
    fp8.yield %acc, %acc : f32, f32
  } {fp8.kernel = @fp8_kernels::@k} : !a, !b -> tensor<?x64xf32>, tensor<1x1xf32>
  return %1 : tensor<1x1xf32>
}
