// buddy-mlir: a weight that is transposed and reshaped by TOSA in front of its product.
func.func @linear(%x: tensor<8x64xf32>, %w: tensor<48x64xf32>) -> tensor<8x48xf32> {
  %zp = "tosa.const"() <{values = dense<0.0> : tensor<1xf32>}> : () -> tensor<1xf32>
  %0 = tosa.transpose %w {perms = array<i32: 1, 0>} : (tensor<48x64xf32>) -> tensor<64x48xf32>
  %s0 = tosa.const_shape {values = dense<[1, 8, 64]> : tensor<3xindex>} : () -> !tosa.shape<3>
  %s1 = tosa.const_shape {values = dense<[1, 64, 48]> : tensor<3xindex>} : () -> !tosa.shape<3>
  %s2 = tosa.const_shape {values = dense<[8, 48]> : tensor<2xindex>} : () -> !tosa.shape<2>
  %1 = tosa.reshape %x, %s0 : (tensor<8x64xf32>, !tosa.shape<3>) -> tensor<1x8x64xf32>
  %2 = tosa.reshape %0, %s1 : (tensor<64x48xf32>, !tosa.shape<3>) -> tensor<1x64x48xf32>
  %3 = tosa.matmul %1, %2, %zp, %zp : (tensor<1x8x64xf32>, tensor<1x64x48xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x8x48xf32>
  %4 = tosa.reshape %3, %s2 : (tensor<1x8x48xf32>, !tosa.shape<2>) -> tensor<8x48xf32>
  return %4 : tensor<8x48xf32>
}
