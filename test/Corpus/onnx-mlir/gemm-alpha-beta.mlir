// ONNX-MLIR: Gemm with alpha, beta, a transposed B and a broadcast C.
#map = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d1)>
func.func @main_graph(%a: tensor<16x64xf32> {onnx.name = "A"}, %b: tensor<32x64xf32> {onnx.name = "B"}, %c: tensor<32xf32> {onnx.name = "C"}) -> (tensor<16x32xf32> {onnx.name = "Y"}) {
  %alpha = arith.constant 0.5 : f32
  %beta = arith.constant 2.0 : f32
  %zero = arith.constant 0.0 : f32
  %te = tensor.empty() : tensor<64x32xf32>
  %t = linalg.transpose ins(%b : tensor<32x64xf32>) outs(%te : tensor<64x32xf32>) permutation = [1, 0]
  %e = tensor.empty() : tensor<16x32xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<16x32xf32>) -> tensor<16x32xf32>
  %0 = linalg.matmul ins(%a, %t : tensor<16x64xf32>, tensor<64x32xf32>) outs(%init : tensor<16x32xf32>) -> tensor<16x32xf32>
  %1 = linalg.generic {indexing_maps = [#map, #row, #map], iterator_types = ["parallel", "parallel"]} ins(%0, %c : tensor<16x32xf32>, tensor<32xf32>) outs(%e : tensor<16x32xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %x = arith.mulf %p, %alpha : f32
    %y = arith.mulf %q, %beta : f32
    %z = arith.addf %x, %y : f32
    linalg.yield %z : f32
  } -> tensor<16x32xf32>
  return %1 : tensor<16x32xf32>
}
