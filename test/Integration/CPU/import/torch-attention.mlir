// RUN: %python %S/Inputs/check.py %s --recipe=none --max-error=1e-5
// RUN: %python %S/Inputs/check.py %s --recipe=current --max-error=0.06

// torch-mlir's scaled dot product attention in f32: heads split by expand_shape
// and transpose, batch_matmul on collapsed heads, and a softmax whose maximum
// carries its index along as torch.max does.

#map = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#map1 = affine_map<(d0, d1, d2) -> (d0, d1, 0)>
module attributes {torch.debug_module_name = "Attention"} {
  func.func @forward(%q: tensor<2x8x32xf32>, %k: tensor<2x8x32xf32>, %v: tensor<2x8x32xf32>) -> tensor<2x8x32xf32> {
    %c0_i64 = arith.constant 0 : i64
    %zero = arith.constant 0.000000e+00 : f32
    %lowest = arith.constant -3.40282347E+38 : f32
    %factor = arith.constant 2.500000e-01 : f32
    %qe = tensor.expand_shape %q [[0], [1], [2, 3]] output_shape [2, 8, 2, 16] : tensor<2x8x32xf32> into tensor<2x8x2x16xf32>
    %ke = tensor.expand_shape %k [[0], [1], [2, 3]] output_shape [2, 8, 2, 16] : tensor<2x8x32xf32> into tensor<2x8x2x16xf32>
    %ve = tensor.expand_shape %v [[0], [1], [2, 3]] output_shape [2, 8, 2, 16] : tensor<2x8x32xf32> into tensor<2x8x2x16xf32>
    %0 = tensor.empty() : tensor<2x2x8x16xf32>
    %qt = linalg.transpose ins(%qe : tensor<2x8x2x16xf32>) outs(%0 : tensor<2x2x8x16xf32>) permutation = [0, 2, 1, 3]
    %vt = linalg.transpose ins(%ve : tensor<2x8x2x16xf32>) outs(%0 : tensor<2x2x8x16xf32>) permutation = [0, 2, 1, 3]
    %1 = tensor.empty() : tensor<2x2x16x8xf32>
    %kt = linalg.transpose ins(%ke : tensor<2x8x2x16xf32>) outs(%1 : tensor<2x2x16x8xf32>) permutation = [0, 2, 3, 1]
    %qc = tensor.collapse_shape %qt [[0, 1], [2], [3]] : tensor<2x2x8x16xf32> into tensor<4x8x16xf32>
    %kc = tensor.collapse_shape %kt [[0, 1], [2], [3]] : tensor<2x2x16x8xf32> into tensor<4x16x8xf32>
    %vc = tensor.collapse_shape %vt [[0, 1], [2], [3]] : tensor<2x2x8x16xf32> into tensor<4x8x16xf32>
    %2 = tensor.empty() : tensor<4x8x8xf32>
    %3 = linalg.fill ins(%zero : f32) outs(%2 : tensor<4x8x8xf32>) -> tensor<4x8x8xf32>
    %scores = linalg.batch_matmul ins(%qc, %kc : tensor<4x8x16xf32>, tensor<4x16x8xf32>) outs(%3 : tensor<4x8x8xf32>) -> tensor<4x8x8xf32>
    %scaled = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%scores : tensor<4x8x8xf32>) outs(%2 : tensor<4x8x8xf32>) {
    ^bb0(%in: f32, %out: f32):
      %20 = arith.mulf %in, %factor : f32
      linalg.yield %20 : f32
    } -> tensor<4x8x8xf32>
    %4 = tensor.empty() : tensor<4x8x1xi64>
    %5 = linalg.fill ins(%c0_i64 : i64) outs(%4 : tensor<4x8x1xi64>) -> tensor<4x8x1xi64>
    %6 = tensor.empty() : tensor<4x8x1xf32>
    %7 = linalg.fill ins(%lowest : f32) outs(%6 : tensor<4x8x1xf32>) -> tensor<4x8x1xf32>
    %max:2 = linalg.generic {indexing_maps = [#map, #map1, #map1], iterator_types = ["parallel", "parallel", "reduction"]} ins(%scaled : tensor<4x8x8xf32>) outs(%7, %5 : tensor<4x8x1xf32>, tensor<4x8x1xi64>) {
    ^bb0(%in: f32, %out: f32, %out_0: i64):
      %20 = linalg.index 2 : index
      %21 = arith.index_cast %20 : index to i64
      %22 = arith.maximumf %in, %out : f32
      %23 = arith.cmpf ogt, %in, %out : f32
      %24 = arith.select %23, %21, %out_0 : i64
      linalg.yield %22, %24 : f32, i64
    } -> (tensor<4x8x1xf32>, tensor<4x8x1xi64>)
    %exp = linalg.generic {indexing_maps = [#map, #map1, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%scaled, %max#0 : tensor<4x8x8xf32>, tensor<4x8x1xf32>) outs(%2 : tensor<4x8x8xf32>) {
    ^bb0(%in: f32, %in_0: f32, %out: f32):
      %20 = arith.subf %in, %in_0 : f32
      %21 = math.exp %20 : f32
      linalg.yield %21 : f32
    } -> tensor<4x8x8xf32>
    %8 = linalg.fill ins(%zero : f32) outs(%6 : tensor<4x8x1xf32>) -> tensor<4x8x1xf32>
    %sum = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "parallel", "reduction"]} ins(%exp : tensor<4x8x8xf32>) outs(%8 : tensor<4x8x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %20 = arith.addf %in, %out : f32
      linalg.yield %20 : f32
    } -> tensor<4x8x1xf32>
    %softmax = linalg.generic {indexing_maps = [#map, #map1, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%exp, %sum : tensor<4x8x8xf32>, tensor<4x8x1xf32>) outs(%2 : tensor<4x8x8xf32>) {
    ^bb0(%in: f32, %in_0: f32, %out: f32):
      %20 = arith.divf %in, %in_0 : f32
      linalg.yield %20 : f32
    } -> tensor<4x8x8xf32>
    %9 = tensor.empty() : tensor<4x8x16xf32>
    %10 = linalg.fill ins(%zero : f32) outs(%9 : tensor<4x8x16xf32>) -> tensor<4x8x16xf32>
    %context = linalg.batch_matmul ins(%softmax, %vc : tensor<4x8x8xf32>, tensor<4x8x16xf32>) outs(%10 : tensor<4x8x16xf32>) -> tensor<4x8x16xf32>
    %11 = tensor.expand_shape %context [[0, 1], [2], [3]] output_shape [2, 2, 8, 16] : tensor<4x8x16xf32> into tensor<2x2x8x16xf32>
    %12 = tensor.empty() : tensor<2x8x2x16xf32>
    %13 = linalg.transpose ins(%11 : tensor<2x2x8x16xf32>) outs(%12 : tensor<2x8x2x16xf32>) permutation = [0, 2, 1, 3]
    %14 = tensor.collapse_shape %13 [[0], [1], [2, 3]] : tensor<2x8x2x16xf32> into tensor<2x8x32xf32>
    return %14 : tensor<2x8x32xf32>
  }
}
