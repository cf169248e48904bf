// RUN: fp8-opt %s --fp8-launch-kernels --convert-fp8-to-linalg --eliminate-empty-tensors --one-shot-bufferize="bufferize-function-boundaries function-boundary-type-conversion=identity-layout-map" --canonicalize --split-input-file --verify-diagnostics | FileCheck %s

!part = !fp8.scaled<32x128xf8E4M3FN, block = [*, *], scale = f32>
!b = !fp8.scaled<64x128xf8E4M3FN, block = [*, *], scale = f32>

// Any of some layers, and columns that begin at a multiple of 16 bytes, are read
// where they are.

// CHECK-LABEL: func.func @aligned(
// CHECK:       %[[A:.+]] = memref.subview
// CHECK-NOT:   memref.copy
// CHECK:       fp8.launch_matmul @fp8_kernels::@k a(%[[A]],
func.func @aligned(%layers: tensor<3x32x256xf8E4M3FN>, %inv: tensor<1x1xf32>, %b: !b, %i: index) -> tensor<32x64xbf16> {
  %rows = tensor.extract_slice %layers[%i, 0, 16] [1, 32, 128] [1, 1, 1]
      : tensor<3x32x256xf8E4M3FN> to tensor<32x128xf8E4M3FN>
  %a = fp8.assemble %rows, %inv : tensor<32x128xf8E4M3FN>, tensor<1x1xf32> -> !part
  %0 = fp8.matmul %a, %b {fp8.kernel = @fp8_kernels::@k} : !part, !b -> tensor<32x64xbf16>
  return %0 : tensor<32x64xbf16>
}

// -----

!part = !fp8.scaled<32x128xf8E4M3FN, block = [*, *], scale = f32>
!b = !fp8.scaled<64x128xf8E4M3FN, block = [*, *], scale = f32>

// Others are copied, and the compiler says so.

// CHECK-LABEL: func.func @start(
// CHECK:       %[[A:.+]] = memref.subview
// CHECK:       %[[COPY:.+]] = memref.alloc() {{.*}} : memref<32x128xf8E4M3FN>
// CHECK:       memref.copy %[[A]], %[[COPY]]
// CHECK:       fp8.launch_matmul @fp8_kernels::@k a(%[[COPY]],
func.func @start(%all: tensor<32x256xf8E4M3FN>, %inv: tensor<1x1xf32>, %b: !b) -> tensor<32x64xbf16> {
  %rows = tensor.extract_slice %all[0, 8] [32, 128] [1, 1]
      : tensor<32x256xf8E4M3FN> to tensor<32x128xf8E4M3FN>
  %a = fp8.assemble %rows, %inv : tensor<32x128xf8E4M3FN>, tensor<1x1xf32> -> !part
  // expected-remark @+1 {{operand 0 is copied: kernels want rows whose elements lie together, at multiples of 16 bytes, but got 'memref<32x128xf8E4M3FN, strided<[256, 1], offset: 8>>'}}
  %0 = fp8.matmul %a, %b {fp8.kernel = @fp8_kernels::@k} : !part, !b -> tensor<32x64xbf16>
  return %0 : tensor<32x64xbf16>
}

// -----

!part = !fp8.scaled<32x128xf8E4M3FN, block = [*, *], scale = f32>
!b = !fp8.scaled<64x128xf8E4M3FN, block = [*, *], scale = f32>

// CHECK-LABEL: func.func @unknown_start(
// CHECK:       memref.copy
// CHECK:       fp8.launch_matmul
func.func @unknown_start(%all: tensor<32x256xf8E4M3FN>, %inv: tensor<1x1xf32>, %b: !b, %i: index) -> tensor<32x64xbf16> {
  %rows = tensor.extract_slice %all[0, %i] [32, 128] [1, 1]
      : tensor<32x256xf8E4M3FN> to tensor<32x128xf8E4M3FN>
  %a = fp8.assemble %rows, %inv : tensor<32x128xf8E4M3FN>, tensor<1x1xf32> -> !part
  // expected-remark @+1 {{operand 0 is copied}}
  %0 = fp8.matmul %a, %b {fp8.kernel = @fp8_kernels::@k} : !part, !b -> tensor<32x64xbf16>
  return %0 : tensor<32x64xbf16>
}

// -----

!part = !fp8.scaled<32x128xf8E4M3FN, block = [*, *], scale = f32>
!b = !fp8.scaled<64x128xf8E4M3FN, block = [*, *], scale = f32>

// CHECK-LABEL: func.func @stride(
// CHECK:       memref.copy
// CHECK:       fp8.launch_matmul
func.func @stride(%all: tensor<32x136xf8E4M3FN>, %inv: tensor<1x1xf32>, %b: !b) -> tensor<32x64xbf16> {
  %rows = tensor.extract_slice %all[0, 0] [32, 128] [1, 1]
      : tensor<32x136xf8E4M3FN> to tensor<32x128xf8E4M3FN>
  %a = fp8.assemble %rows, %inv : tensor<32x128xf8E4M3FN>, tensor<1x1xf32> -> !part
  // expected-remark @+1 {{operand 0 is copied}}
  %0 = fp8.matmul %a, %b {fp8.kernel = @fp8_kernels::@k} : !part, !b -> tensor<32x64xbf16>
  return %0 : tensor<32x64xbf16>
}

// -----

!a = !fp8.scaled<32x128xf8E4M3FN, block = [*, *], scale = f32>
!b = !fp8.scaled<64x128xf8E4M3FN, block = [*, *], scale = f32>

// A result within a larger tensor is written beside it first.

// CHECK-LABEL: func.func @result(
// CHECK:       %[[PART:.+]] = memref.subview {{.*}} to memref<32x64xbf16, strided<[100, 1], offset: 3>>
// CHECK:       %[[TEMPORARY:.+]] = memref.alloc() {{.*}} : memref<32x64xbf16>
// CHECK-NOT:   memref.copy %[[PART]]
// CHECK:       fp8.launch_matmul {{.*}} outs(%[[TEMPORARY]] : memref<32x64xbf16>)
// CHECK:       memref.copy %[[TEMPORARY]], %[[PART]]
func.func @result(%a: !a, %b: !b, %all: tensor<32x100xbf16>) -> tensor<32x100xbf16> {
  // expected-remark @+1 {{operand 4 is copied}}
  %0 = fp8.matmul %a, %b {fp8.kernel = @fp8_kernels::@k} : !a, !b -> tensor<32x64xbf16>
  %1 = tensor.insert_slice %0 into %all[0, 3] [32, 64] [1, 1] : tensor<32x64xbf16> into tensor<32x100xbf16>
  return %1 : tensor<32x100xbf16>
}

// -----

!a = !fp8.scaled<32x128xf8E4M3FN, block = [*, *], scale = f32>
!b = !fp8.scaled<64x128xf8E4M3FN, block = [*, *], scale = f32>

// A factor per tensor is read alone; a bias in pairs.

// CHECK-LABEL: func.func @epilogue(
// CHECK:       %[[INV:.+]] = memref.subview {{.*}} to memref<1x1xf32
// CHECK:       %[[BIAS:.+]] = memref.alloc() {{.*}} : memref<64xbf16>
// CHECK:       fp8.launch_matmul @fp8_kernels::@k a(%{{.*}}, %[[INV]] :
// CHECK-SAME:  operands(%[[BIAS]] :
func.func @epilogue(%rows: tensor<32x128xf8E4M3FN>, %invs: tensor<5x1x1xf32>, %b: !b, %biases: tensor<65xbf16>, %i: index) -> tensor<32x64xbf16> {
  %inv = tensor.extract_slice %invs[%i, 0, 0] [1, 1, 1] [1, 1, 1] : tensor<5x1x1xf32> to tensor<1x1xf32>
  %bias = tensor.extract_slice %biases[1] [64] [1] : tensor<65xbf16> to tensor<64xbf16>
  %a = fp8.assemble %rows, %inv : tensor<32x128xf8E4M3FN>, tensor<1x1xf32> -> !a
  // expected-remark @+1 {{operand 4 is copied: kernels want rows whose elements lie together, at multiples of 8 bytes, but got 'memref<64xbf16, strided<[1], offset: 1>>'}}
  %0 = fp8.matmul %a, %b epilogue(%bias : tensor<64xbf16>) {
  ^bb0(%acc: f32, %b0: bf16):
    %1 = arith.extf %b0 : bf16 to f32
    %2 = arith.addf %acc, %1 : f32
    %3 = arith.truncf %2 : f32 to bf16
    fp8.yield %3 : bf16
  } {fp8.kernel = @fp8_kernels::@k} : !a, !b -> tensor<32x64xbf16>
  return %0 : tensor<32x64xbf16>
}
