// RUN: fp8-opt %s --fp8-launch-kernels --split-input-file | FileCheck %s

// The kernel moves the codes. One factor for all is its own transpose.

gpu.module @fp8_kernels {
  llvm.func @codes() attributes {fp8_gpu.launch = #fp8_gpu.launch<
    arguments = [#fp8_gpu.argument<name = "x", element = f8E4M3FN, rank = 2, access = read, alignment = 1>,
                 #fp8_gpu.argument<name = "y", element = f8E4M3FN, rank = 2, access = write, alignment = 1>],
    extents = [], params = [], grid = affine_map<() -> (1)>, block = 32>}
}

// CHECK-LABEL: func.func @tensor
// CHECK-SAME:    %[[Q:[a-z0-9]+]]:
// CHECK:       %[[CODES:.+]], %{{.*}} = fp8.disassemble %[[Q]]
// CHECK:       %[[M:.+]] = tensor.dim %[[CODES]]
// CHECK:       %[[EMPTY:.+]] = tensor.empty(%[[M]]) : tensor<64x?xf8E4M3FN>
// CHECK:       %[[MOVED:.+]] = fp8_gpu.launch @fp8_kernels::@codes {{.*}} ins(%[[CODES]] : {{.*}}) outs(%[[EMPTY]] : {{.*}})
// CHECK:       %{{.*}}, %[[FACTOR:.+]] = fp8.disassemble %[[Q]]
// CHECK-NOT:   linalg.transpose
// CHECK:       %[[R:.+]] = fp8.assemble %[[MOVED]], %[[FACTOR]]
// CHECK:       return %[[R]]
func.func @tensor(%q: !fp8.scaled<?x64xf8E4M3FN, block = [*, *], scale = f32>) -> !fp8.scaled<64x?xf8E4M3FN, block = [*, *], scale = f32> {
  %0 = fp8.transpose %q permutation = [1, 0] {fp8_gpu.kernel = @fp8_kernels::@codes} : !fp8.scaled<?x64xf8E4M3FN, block = [*, *], scale = f32>
  return %0 : !fp8.scaled<64x?xf8E4M3FN, block = [*, *], scale = f32>
}

// Others are transposed, too.

// CHECK-LABEL: func.func @block
// CHECK:       %[[MOVED:.+]] = fp8_gpu.launch
// CHECK:       %{{.*}}, %[[FACTORS:.+]] = fp8.disassemble
// CHECK:       %[[TRANSPOSED:.+]] = linalg.transpose ins(%[[FACTORS]] : tensor<256x2xf32>) outs(%{{.*}} : tensor<2x256xf32>) permutation = [1, 0]
// CHECK:       fp8.assemble %[[MOVED]], %[[TRANSPOSED]]
func.func @block(%q: !fp8.scaled<256x256xf8E4M3FN, block = [1, 128], scale = f32>) -> !fp8.scaled<256x256xf8E4M3FN, block = [128, 1], scale = f32> {
  %0 = fp8.transpose %q permutation = [1, 0] {fp8_gpu.kernel = @fp8_kernels::@codes} : !fp8.scaled<256x256xf8E4M3FN, block = [1, 128], scale = f32>
  return %0 : !fp8.scaled<256x256xf8E4M3FN, block = [128, 1], scale = f32>
}

// -----

gpu.module @fp8_kernels {
  llvm.func @halves() attributes {fp8_gpu.launch = #fp8_gpu.launch<
    arguments = [#fp8_gpu.argument<name = "x", element = bf16, rank = 2, access = read, alignment = 4>,
                 #fp8_gpu.argument<name = "y", element = bf16, rank = 2, access = write, alignment = 4>],
    extents = [], params = [], grid = affine_map<() -> (1)>, block = 32>}
}

// Into the tensor that it is given.

// CHECK-LABEL: func.func @linalg
// CHECK-SAME:    %[[X:[a-z0-9]+]]: tensor<8x64xbf16>, %[[Y:[a-z0-9]+]]: tensor<64x8xbf16>
// CHECK:       %[[R:.+]] = fp8_gpu.launch @fp8_kernels::@halves {{.*}} ins(%[[X]] : {{.*}}) outs(%[[Y]] : {{.*}})
// CHECK:       return %[[R]]
func.func @linalg(%x: tensor<8x64xbf16>, %y: tensor<64x8xbf16>) -> tensor<64x8xbf16> {
  %0 = linalg.transpose ins(%x : tensor<8x64xbf16>) outs(%y : tensor<64x8xbf16>) permutation = [1, 0] {fp8_gpu.kernel = @fp8_kernels::@halves}
  return %0 : tensor<64x8xbf16>
}
