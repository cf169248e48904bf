// tpp-mlir: operands packed by linalg.pack, the product, and linalg.unpack.
#a = affine_map<(bm, bn, bk, m, n, k) -> (bm, bk, m, k)>
#b = affine_map<(bm, bn, bk, m, n, k) -> (bn, bk, k, n)>
#c = affine_map<(bm, bn, bk, m, n, k) -> (bm, bn, m, n)>
func.func @entry(%x: tensor<128x256xf32>, %w: tensor<256x128xf32>, %y: tensor<128x128xf32>) -> tensor<128x128xf32> {
  %ax = tensor.empty() : tensor<4x8x32x32xf32>
  %bx = tensor.empty() : tensor<4x8x32x32xf32>
  %cx = tensor.empty() : tensor<4x4x32x32xf32>
  %a = linalg.pack %x inner_dims_pos = [0, 1] inner_tiles = [32, 32] into %ax : tensor<128x256xf32> -> tensor<4x8x32x32xf32>
  %b = linalg.pack %w outer_dims_perm = [1, 0] inner_dims_pos = [0, 1] inner_tiles = [32, 32] into %bx : tensor<256x128xf32> -> tensor<4x8x32x32xf32>
  %c = linalg.pack %y inner_dims_pos = [0, 1] inner_tiles = [32, 32] into %cx : tensor<128x128xf32> -> tensor<4x4x32x32xf32>
  %0 = linalg.generic {indexing_maps = [#a, #b, #c],
      iterator_types = ["parallel", "parallel", "reduction", "parallel", "parallel", "reduction"]}
      ins(%a, %b : tensor<4x8x32x32xf32>, tensor<4x8x32x32xf32>) outs(%c : tensor<4x4x32x32xf32>) {
  ^bb0(%p: f32, %q: f32, %acc: f32):
    %t = arith.mulf %p, %q : f32
    %s = arith.addf %acc, %t : f32
    linalg.yield %s : f32
  } -> tensor<4x4x32x32xf32>
  %1 = linalg.unpack %0 inner_dims_pos = [0, 1] inner_tiles = [32, 32] into %y : tensor<4x4x32x32xf32> -> tensor<128x128xf32>
  return %1 : tensor<128x128xf32>
}
