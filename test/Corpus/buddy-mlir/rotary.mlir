// buddy-mlir: rotary positions of a Llama, halves swapped by slices.
func.func @rotary(%x: tensor<4x16x32xf32>, %cos: tensor<16x32xf32>, %sin: tensor<16x32xf32>, %k: tensor<4x32x16xf32>, %y: tensor<4x16x16xf32>) -> tensor<4x16x16xf32> {
  %low = tensor.extract_slice %x[0, 0, 0] [4, 16, 16] [1, 1, 1] : tensor<4x16x32xf32> to tensor<4x16x16xf32>
  %high = tensor.extract_slice %x[0, 0, 16] [4, 16, 16] [1, 1, 1] : tensor<4x16x32xf32> to tensor<4x16x16xf32>
  %negative = arith.negf %high : tensor<4x16x16xf32>
  %e = tensor.empty() : tensor<4x16x32xf32>
  %0 = tensor.insert_slice %negative into %e[0, 0, 0] [4, 16, 16] [1, 1, 1] : tensor<4x16x16xf32> into tensor<4x16x32xf32>
  %1 = tensor.insert_slice %low into %0[0, 0, 16] [4, 16, 16] [1, 1, 1] : tensor<4x16x16xf32> into tensor<4x16x32xf32>
  %2 = linalg.generic {indexing_maps = [affine_map<(b, t, d) -> (b, t, d)>, affine_map<(b, t, d) -> (b, t, d)>, affine_map<(b, t, d) -> (t, d)>, affine_map<(b, t, d) -> (t, d)>, affine_map<(b, t, d) -> (b, t, d)>],
      iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x, %1, %cos, %sin : tensor<4x16x32xf32>, tensor<4x16x32xf32>, tensor<16x32xf32>, tensor<16x32xf32>) outs(%e : tensor<4x16x32xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32, %s: f32, %o: f32):
    %p = arith.mulf %a, %c : f32
    %q = arith.mulf %b, %s : f32
    %r = arith.addf %p, %q : f32
    linalg.yield %r : f32
  } -> tensor<4x16x32xf32>
  %3 = linalg.batch_matmul ins(%2, %k : tensor<4x16x32xf32>, tensor<4x32x16xf32>) outs(%y : tensor<4x16x16xf32>) -> tensor<4x16x16xf32>
  return %3 : tensor<4x16x16xf32>
}
