// RUN: fp8-opt %s --fp8-annotate-gemms --fp8-apply-recipe="recipe=current require" --split-input-file --verify-diagnostics

func.func @padding(%x: tensor<32x3xf32>, %w: tensor<3x16xf32>, %c: tensor<32x16xf32>) -> tensor<32x16xf32> {
  // expected-error @below {{expected 'padding.matmul_0' to be in FP8, but K=3 is not a multiple of 16 and padding it to 16 would add more than 25%; make K a multiple of 16 or raise max-padding}}
  %0 = linalg.matmul ins(%x, %w : tensor<32x3xf32>, tensor<3x16xf32>) outs(%c : tensor<32x16xf32>) -> tensor<32x16xf32>
  return %0 : tensor<32x16xf32>
}

// -----

// All of them are told, not the first only.
func.func @types(%x: tensor<16x16xf64>, %y: tensor<16x16xi8>, %z: tensor<16x16xi32>) -> (tensor<16x16xf64>, tensor<16x16xi32>) {
  // expected-error @below {{expected 'types.matmul_0' to be in FP8, but the contraction has operands of type f64, not f32, bf16 or f16; convert its operands to f32, bf16 or f16}}
  %0 = linalg.matmul ins(%x, %x : tensor<16x16xf64>, tensor<16x16xf64>) outs(%x : tensor<16x16xf64>) -> tensor<16x16xf64>
  // expected-error @below {{expected 'types.matmul_1' to be in FP8, but the contraction has operands of type i8}}
  %1 = linalg.matmul ins(%y, %y : tensor<16x16xi8>, tensor<16x16xi8>) outs(%z : tensor<16x16xi32>) -> tensor<16x16xi32>
  return %0, %1 : tensor<16x16xf64>, tensor<16x16xi32>
}

// -----

func.func @memrefs(%x: memref<16x16xf32>, %c: memref<16x16xf32>) {
  // expected-error @below {{the contraction works on memrefs; run the pass before bufferization, on tensors}}
  linalg.matmul ins(%x, %x : memref<16x16xf32>, memref<16x16xf32>) outs(%c : memref<16x16xf32>)
  return
}

// -----

func.func @convolution(%x: tensor<1x16x16x3xf32>, %w: tensor<3x3x3x8xf32>, %c: tensor<1x14x14x8xf32>) -> tensor<1x14x14x8xf32> {
  // expected-error @below {{indexes an operand by an expression or twice by one loop, as a convolution does; express it as a matrix product, e.g. after im2col}}
  %0 = linalg.conv_2d_nhwc_hwcf ins(%x, %w : tensor<1x16x16x3xf32>, tensor<3x3x3x8xf32>) outs(%c : tensor<1x14x14x8xf32>) -> tensor<1x14x14x8xf32>
  return %0 : tensor<1x14x14x8xf32>
}

// -----

// Asked to stay.
func.func @none(%x: tensor<16x16xf64>) -> tensor<16x16xf64> {
  %0 = linalg.matmul {fp8.recipe = #fp8.none} ins(%x, %x : tensor<16x16xf64>, tensor<16x16xf64>) outs(%x : tensor<16x16xf64>) -> tensor<16x16xf64>
  return %0 : tensor<16x16xf64>
}
