// RUN: fp8-opt %s --fp8-launch-kernels | FileCheck %s
// RUN: fp8-opt %s --fp8-launch-kernels --convert-fp8-to-linalg --one-shot-bufferize="bufferize-function-boundaries function-boundary-type-conversion=identity-layout-map" | FileCheck %s --check-prefix=BUFFERS

!a = !fp8.scaled<?x128xf8E4M3FN, block = [*, *], scale = f32>
!b = !fp8.scaled<64x128xf8E4M3FN, block = [*, *], scale = f32>

#a = #fp8_gpu.argument<name = "a", element = f8E4M3FN, rank = 2, access = read, alignment = 16>
#scale_a = #fp8_gpu.argument<name = "scale_a", element = f32, rank = 2, access = read, alignment = 4>
#b = #fp8_gpu.argument<name = "b", element = f8E4M3FN, rank = 2, access = read, alignment = 16>
#scale_b = #fp8_gpu.argument<name = "scale_b", element = f32, rank = 2, access = read, alignment = 4>
gpu.module @fp8_kernels {
  llvm.func @bias() attributes {fp8_gpu.launch = #fp8_gpu.launch<
    arguments = [#a, #scale_a, #b, #scale_b,
                 #fp8_gpu.argument<name = "bias", element = bf16, rank = 1, access = read, alignment = 4>,
                 #fp8_gpu.argument<name = "d", element = bf16, rank = 2, access = write, alignment = 16>],
    extents = [], params = [#fp8_gpu.capture<0 : f32>], grid = affine_map<() -> (1)>, block = 32>}
  llvm.func @amax() attributes {fp8_gpu.launch = #fp8_gpu.launch<
    arguments = [#a, #scale_a, #b, #scale_b,
                 #fp8_gpu.argument<name = "d", element = f32, rank = 2, access = write, alignment = 16>,
                 #fp8_gpu.argument<name = "amax", element = f32, rank = 2, access = raise, alignment = 4>],
    extents = [], params = [], grid = affine_map<() -> (1)>, block = 32>}
  llvm.func @plain() attributes {fp8_gpu.launch = #fp8_gpu.launch<
    arguments = [#fp8_gpu.argument<name = "a", element = bf16, rank = 3, access = read, alignment = 16>,
                 #fp8_gpu.argument<name = "b", element = bf16, rank = 3, access = read, alignment = 16>,
                 #fp8_gpu.argument<name = "d", element = f32, rank = 3, access = write, alignment = 16>],
    extents = [], params = [], grid = affine_map<() -> (1)>, block = 32>}
}

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
// CHECK:       %[[Y:.+]] = fp8_gpu.launch @fp8_kernels::@bias #{{launch[0-9]*}} ins(%[[A]], %[[A_INV]], %[[B]], %[[B_INV]], %[[BIAS]] :
// CHECK-SAME:    captures(%[[S]] : f32) outs(%[[D]] : tensor<?x64xbf16>) -> tensor<?x64xbf16>
// CHECK:       return %[[Y]]

// The result is written where it is returned from: there is no copy.

// BUFFERS-LABEL: func.func @launch
// BUFFERS:       %[[D:.+]] = memref.alloc
// BUFFERS-NOT:   memref.copy
// BUFFERS:       fp8_gpu.launch {{.*}} outs(%[[D]] : memref<?x64xbf16>)
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
  } {fp8_gpu.kernel = @fp8_kernels::@bias} : !a, !b -> tensor<?x64xbf16>
  return %0 : tensor<?x64xbf16>
}

// An amax begins as 0, and is a result like the other.

// CHECK-LABEL: func.func @amax
// CHECK:       %[[ZERO:.+]] = linalg.fill ins(%cst{{.*}} : f32) outs(%{{.*}} : tensor<1x1xf32>)
// CHECK:       %[[BOTH:.+]]:2 = fp8_gpu.launch {{.*}} outs(%{{.*}}, %[[ZERO]] : tensor<?x64xf32>, tensor<1x1xf32>)
// CHECK:       return %[[BOTH]]#1
func.func @amax(%a: !a, %b: !b) -> tensor<1x1xf32> {
  %0, %1 = fp8.matmul %a, %b epilogue {
  ^bb0(%acc: f32):
    fp8.yield %acc, %acc : f32, f32
  } {fp8_gpu.kernel = @fp8_kernels::@amax} : !a, !b -> tensor<?x64xf32>, tensor<1x1xf32>
  return %1 : tensor<1x1xf32>
}

// Operands in high precision are one tensor each; the result's extents are found
// whichever way they are given.

// CHECK-LABEL: func.func @plain
// CHECK-SAME:    %[[A:[a-z0-9]+]]: tensor<?x128x64xbf16>, %[[B:[a-z0-9]+]]: tensor<?x32x128xbf16>
// CHECK-NOT:   fp8.disassemble
// CHECK:       %[[ZERO:.+]] = arith.constant 0
// CHECK:       %[[BATCH:.+]] = tensor.dim %[[A]], %[[ZERO]]
// CHECK:       %[[D:.+]] = tensor.empty(%[[BATCH]]) : tensor<?x64x32xf32>
// CHECK-NOT:   scf.if
// CHECK:       fp8_gpu.launch @fp8_kernels::@plain #{{launch[0-9]*}} ins(%[[A]], %[[B]] : tensor<?x128x64xbf16>, tensor<?x32x128xbf16>) outs(%[[D]] : tensor<?x64x32xf32>) -> tensor<?x64x32xf32>
func.func @plain(%a: tensor<?x128x64xbf16>, %b: tensor<?x32x128xbf16>) -> tensor<?x64x32xf32> {
  %0 = fp8.matmul %a, %b transpose_a accumulate = fast {fp8_gpu.kernel = @fp8_kernels::@plain}
    : tensor<?x128x64xbf16>, tensor<?x32x128xbf16> -> tensor<?x64x32xf32>
  return %0 : tensor<?x64x32xf32>
}

// Rows that may turn out not to be multiples of the 16 bytes that a kernel asks
// for are told apart when the program runs: without them the matmul has no
// kernel.

// CHECK-LABEL: func.func @unknown_rows
// CHECK-SAME:    %[[A:[a-z0-9]+]]: tensor<?x128x?xbf16>, %[[B:[a-z0-9]+]]: tensor<?x?x128xbf16>
// CHECK:       %[[EIGHT:.+]] = arith.constant 8 : index
// CHECK:       %[[REST_A:.+]] = arith.remui %{{.+}}, %[[EIGHT]]
// CHECK:       %[[A_FITS:.+]] = arith.cmpi eq, %[[REST_A]]
// CHECK:       %[[FOUR:.+]] = arith.constant 4 : index
// CHECK:       %[[REST_D:.+]] = arith.remui %{{.+}}, %[[FOUR]]
// CHECK:       %[[D_FITS:.+]] = arith.cmpi eq, %[[REST_D]]
// CHECK:       %[[FITS:.+]] = arith.andi %[[A_FITS]], %[[D_FITS]]
// CHECK:       %[[Y:.+]] = scf.if %[[FITS]] -> (tensor<?x?x?xf32>)
// CHECK:         %[[BATCH:.+]] = tensor.dim %[[A]], %{{.+}}
// CHECK:         %[[M:.+]] = tensor.dim %[[A]], %{{.+}}
// CHECK:         %[[N:.+]] = tensor.dim %[[B]], %{{.+}}
// CHECK:         %[[D:.+]] = tensor.empty(%[[BATCH]], %[[M]], %[[N]])
// CHECK:         %[[LAUNCHED:.+]] = fp8_gpu.launch @fp8_kernels::@plain {{.*}} outs(%[[D]] :
// CHECK:         scf.yield %[[LAUNCHED]]
// CHECK:       else
// CHECK-NEXT:    %[[OTHER:.+]] = fp8.matmul %[[A]], %[[B]] transpose_a accumulate = fast : tensor
// CHECK-NEXT:    scf.yield %[[OTHER]]
// CHECK:       return %[[Y]]
func.func @unknown_rows(%a: tensor<?x128x?xbf16>, %b: tensor<?x?x128xbf16>) -> tensor<?x?x?xf32> {
  %0 = fp8.matmul %a, %b transpose_a accumulate = fast {fp8_gpu.kernel = @fp8_kernels::@plain}
    : tensor<?x128x?xbf16>, tensor<?x?x128xbf16> -> tensor<?x?x?xf32>
  return %0 : tensor<?x?x?xf32>
}
