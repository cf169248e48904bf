// ONNX-MLIR: MatMul of ranks 3 and 2 as one generic.
func.func @main_graph(%a: tensor<2x16x64xf32>, %b: tensor<64x32xf32>, %y: tensor<2x16x32xf32>) -> tensor<2x16x32xf32> {
  %0 = linalg.generic {indexing_maps = [affine_map<(b, m, n, k) -> (b, m, k)>, affine_map<(b, m, n, k) -> (k, n)>, affine_map<(b, m, n, k) -> (b, m, n)>],
      iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%a, %b : tensor<2x16x64xf32>, tensor<64x32xf32>) outs(%y : tensor<2x16x32xf32>) {
  ^bb0(%p: f32, %q: f32, %acc: f32):
    %t = arith.mulf %p, %q : f32
    %s = arith.addf %acc, %t : f32
    linalg.yield %s : f32
  } -> tensor<2x16x32xf32>
  return %0 : tensor<2x16x32xf32>
}
