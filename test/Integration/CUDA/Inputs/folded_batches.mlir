func.func @main(%dy: tensor<2x128x64xbf16> {fp8.name = "dy", fp8.grad}, %x: tensor<2x128x48xbf16> {fp8.name = "x"}) -> (tensor<64x48xf32> {fp8.name = "dw"}) {
  %zero = arith.constant 0.0 : f32
  %a = tensor.collapse_shape %dy [[0, 1], [2]] : tensor<2x128x64xbf16> into tensor<256x64xbf16>
  %b = tensor.collapse_shape %x [[0, 1], [2]] : tensor<2x128x48xbf16> into tensor<256x48xbf16>
  %te = tensor.empty() : tensor<64x256xbf16>
  %t = linalg.transpose ins(%a : tensor<256x64xbf16>) outs(%te : tensor<64x256xbf16>) permutation = [1, 0]
  %e = tensor.empty() : tensor<64x48xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<64x48xf32>) -> tensor<64x48xf32>
  %dw = linalg.matmul {fp8.role = #fp8.role<wgrad>} ins(%t, %b : tensor<64x256xbf16>, tensor<256x48xbf16>) outs(%z : tensor<64x48xf32>) -> tensor<64x48xf32>
  return %dw : tensor<64x48xf32>
}
