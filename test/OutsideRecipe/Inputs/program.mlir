func.func @linear(%x: tensor<32x64xbf16> {fp8.name = "x"},
                  %w: tensor<64x16xbf16> {fp8.name = "w", fp8.weight})
    -> (tensor<32x16xf32> {fp8.name = "y"}) {
  %zero = arith.constant dense<0.0> : tensor<32x16xf32>
  %y = linalg.matmul {fp8.name = "l0"}
      ins(%x, %w : tensor<32x64xbf16>, tensor<64x16xbf16>)
      outs(%zero : tensor<32x16xf32>) -> tensor<32x16xf32>
  return %y : tensor<32x16xf32>
}
