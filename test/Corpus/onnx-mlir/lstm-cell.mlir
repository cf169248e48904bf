// ONNX-MLIR: one step of an LSTM, two products of four gates each and their slices.
#map = affine_map<(d0, d1) -> (d0, d1)>
func.func @main_graph(%x: tensor<2x32xf32>, %h: tensor<2x32xf32>, %c: tensor<2x32xf32>, %w: tensor<32x128xf32>, %r: tensor<32x128xf32>) -> (tensor<2x32xf32>, tensor<2x32xf32>) {
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %e = tensor.empty() : tensor<2x128xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<2x128xf32>) -> tensor<2x128xf32>
  %0 = linalg.matmul ins(%x, %w : tensor<2x32xf32>, tensor<32x128xf32>) outs(%init : tensor<2x128xf32>) -> tensor<2x128xf32>
  %1 = linalg.matmul ins(%h, %r : tensor<2x32xf32>, tensor<32x128xf32>) outs(%0 : tensor<2x128xf32>) -> tensor<2x128xf32>
  %i = tensor.extract_slice %1[0, 0] [2, 32] [1, 1] : tensor<2x128xf32> to tensor<2x32xf32>
  %o = tensor.extract_slice %1[0, 32] [2, 32] [1, 1] : tensor<2x128xf32> to tensor<2x32xf32>
  %f = tensor.extract_slice %1[0, 64] [2, 32] [1, 1] : tensor<2x128xf32> to tensor<2x32xf32>
  %g = tensor.extract_slice %1[0, 96] [2, 32] [1, 1] : tensor<2x128xf32> to tensor<2x32xf32>
  %se = tensor.empty() : tensor<2x32xf32>
  %cell = linalg.generic {indexing_maps = [#map, #map, #map, #map, #map], iterator_types = ["parallel", "parallel"]}
      ins(%i, %f, %g, %c : tensor<2x32xf32>, tensor<2x32xf32>, tensor<2x32xf32>, tensor<2x32xf32>) outs(%se : tensor<2x32xf32>) {
  ^bb0(%a: f32, %b: f32, %d: f32, %old: f32, %out: f32):
    %a0 = arith.negf %a : f32
    %a1 = math.exp %a0 : f32
    %a2 = arith.addf %a1, %one : f32
    %ia = arith.divf %one, %a2 : f32
    %b0 = arith.negf %b : f32
    %b1 = math.exp %b0 : f32
    %b2 = arith.addf %b1, %one : f32
    %fa = arith.divf %one, %b2 : f32
    %t = math.tanh %d : f32
    %p = arith.mulf %ia, %t : f32
    %q = arith.mulf %fa, %old : f32
    %s = arith.addf %p, %q : f32
    linalg.yield %s : f32
  } -> tensor<2x32xf32>
  %hidden = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel"]}
      ins(%o, %cell : tensor<2x32xf32>, tensor<2x32xf32>) outs(%se : tensor<2x32xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %t = math.tanh %b : f32
    %p = arith.mulf %a, %t : f32
    linalg.yield %p : f32
  } -> tensor<2x32xf32>
  return %hidden, %cell : tensor<2x32xf32>, tensor<2x32xf32>
}
