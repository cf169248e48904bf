// buddy-mlir: two layers in TOSA, as its frontend for PyTorch writes them.
func.func @forward(%x: tensor<1x32x64xf32>, %w: tensor<1x64x128xf32>, %b: tensor<1x1x128xf32>) -> tensor<1x32x128xf32> {
  %zp = "tosa.const"() <{values = dense<0.0> : tensor<1xf32>}> : () -> tensor<1xf32>
  %0 = tosa.matmul %x, %w, %zp, %zp : (tensor<1x32x64xf32>, tensor<1x64x128xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x32x128xf32>
  %1 = tosa.add %0, %b : (tensor<1x32x128xf32>, tensor<1x1x128xf32>) -> tensor<1x32x128xf32>
  %2 = tosa.sigmoid %1 : (tensor<1x32x128xf32>) -> tensor<1x32x128xf32>
  %shift = "tosa.const"() <{values = dense<0> : tensor<1xi8>}> : () -> tensor<1xi8>
  %3 = tosa.mul %1, %2, %shift : (tensor<1x32x128xf32>, tensor<1x32x128xf32>, tensor<1xi8>) -> tensor<1x32x128xf32>
  return %3 : tensor<1x32x128xf32>
}
