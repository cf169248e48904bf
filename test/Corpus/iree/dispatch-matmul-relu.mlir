// IREE: a dispatch after fusion, matmul and relu of a dynamic M.
#map = affine_map<(d0, d1) -> (d0, d1)>
func.func @dispatch(%x: tensor<?x256xf32>, %w: tensor<256x128xf32>) -> tensor<?x128xf32> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %m = tensor.dim %x, %c0 : tensor<?x256xf32>
  %empty = tensor.empty(%m) : tensor<?x128xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<?x128xf32>) -> tensor<?x128xf32>
  %0 = linalg.matmul ins(%x, %w : tensor<?x256xf32>, tensor<256x128xf32>) outs(%init : tensor<?x128xf32>) -> tensor<?x128xf32>
  %1 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]}
      ins(%0 : tensor<?x128xf32>) outs(%empty : tensor<?x128xf32>) {
  ^bb0(%v: f32, %o: f32):
    %r = arith.maximumf %v, %zero : f32
    linalg.yield %r : f32
  } -> tensor<?x128xf32>
  return %1 : tensor<?x128xf32>
}
