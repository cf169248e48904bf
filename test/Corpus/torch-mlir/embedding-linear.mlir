// torch-mlir: rows of a table by tensor.extract, an assertion of their range, and a linear.
func.func @forward(%ids: tensor<2x8xi64>, %table: tensor<100x64xf32>, %w: tensor<32x64xf32>) -> tensor<16x32xf32> {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : i64
  %c100 = arith.constant 100 : i64
  %e = tensor.empty() : tensor<2x8x64xf32>
  %0 = linalg.generic {indexing_maps = [affine_map<(b, t, d) -> (b, t)>, affine_map<(b, t, d) -> (b, t, d)>], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%ids : tensor<2x8xi64>) outs(%e : tensor<2x8x64xf32>) {
  ^bb0(%id: i64, %o: f32):
    %row = arith.index_cast %id : i64 to index
    %column = linalg.index 2 : index
    %below = arith.cmpi slt, %id, %c100 : i64
    cf.assert %below, "index must be smaller than dim size"
    %above = arith.cmpi sge, %id, %c0 : i64
    cf.assert %above, "index must be larger or equal to 0"
    %v = tensor.extract %table[%row, %column] : tensor<100x64xf32>
    linalg.yield %v : f32
  } -> tensor<2x8x64xf32>
  %1 = tensor.collapse_shape %0 [[0, 1], [2]] : tensor<2x8x64xf32> into tensor<16x64xf32>
  %te = tensor.empty() : tensor<64x32xf32>
  %t = linalg.transpose ins(%w : tensor<32x64xf32>) outs(%te : tensor<64x32xf32>) permutation = [1, 0]
  %ye = tensor.empty() : tensor<16x32xf32>
  %init = linalg.fill ins(%zero : f32) outs(%ye : tensor<16x32xf32>) -> tensor<16x32xf32>
  %2 = linalg.matmul ins(%1, %t : tensor<16x64xf32>, tensor<64x32xf32>) outs(%init : tensor<16x32xf32>) -> tensor<16x32xf32>
  return %2 : tensor<16x32xf32>
}
