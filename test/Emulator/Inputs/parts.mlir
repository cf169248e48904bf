// Few rows and a long K, of which several blocks sum parts.
func.func @parts(%x: tensor<8x4096xbf16> {fp8.name = "x"}, %w: tensor<4096x128xbf16> {fp8.name = "w", fp8.weight})
    -> (tensor<8x128xbf16> {fp8.name = "y"}) {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<8x128xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<8x128xf32>) -> tensor<8x128xf32>
  %product = linalg.matmul ins(%x, %w : tensor<8x4096xbf16>, tensor<4096x128xbf16>)
                           outs(%zeros : tensor<8x128xf32>) -> tensor<8x128xf32> loc("parts")
  %y = arith.truncf %product : tensor<8x128xf32> to tensor<8x128xbf16>
  return %y : tensor<8x128xbf16>
}
