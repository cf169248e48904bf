// JAX: the forward and the vjp of a linear, of which one product has both operands transposed.
func.func public @main(%w: tensor<64x32xf32> {fp8.name = "w", fp8.weight}, %x: tensor<16x64xf32> {fp8.name = "x"}, %dy: tensor<16x32xf32> {fp8.name = "dy", fp8.grad}) -> (tensor<16x32xf32>, tensor<32x64xf32>, tensor<16x64xf32>) {
  %zero = arith.constant 0.0 : f32
  %ye = tensor.empty() : tensor<16x32xf32>
  %y0 = linalg.fill ins(%zero : f32) outs(%ye : tensor<16x32xf32>) -> tensor<16x32xf32>
  %y = linalg.matmul ins(%x, %w : tensor<16x64xf32>, tensor<64x32xf32>) outs(%y0 : tensor<16x32xf32>) -> tensor<16x32xf32>
  %dyte = tensor.empty() : tensor<32x16xf32>
  %dyt = linalg.transpose ins(%dy : tensor<16x32xf32>) outs(%dyte : tensor<32x16xf32>) permutation = [1, 0]
  %dwe = tensor.empty() : tensor<32x64xf32>
  %dw0 = linalg.fill ins(%zero : f32) outs(%dwe : tensor<32x64xf32>) -> tensor<32x64xf32>
  %dw = linalg.matmul ins(%dyt, %x : tensor<32x16xf32>, tensor<16x64xf32>) outs(%dw0 : tensor<32x64xf32>) -> tensor<32x64xf32>
  %wte = tensor.empty() : tensor<32x64xf32>
  %wt = linalg.transpose ins(%w : tensor<64x32xf32>) outs(%wte : tensor<32x64xf32>) permutation = [1, 0]
  %dxe = tensor.empty() : tensor<16x64xf32>
  %dx0 = linalg.fill ins(%zero : f32) outs(%dxe : tensor<16x64xf32>) -> tensor<16x64xf32>
  %dx = linalg.matmul ins(%dy, %wt : tensor<16x32xf32>, tensor<32x64xf32>) outs(%dx0 : tensor<16x64xf32>) -> tensor<16x64xf32>
  return %y, %dw, %dx : tensor<16x32xf32>, tensor<32x64xf32>, tensor<16x64xf32>
}
