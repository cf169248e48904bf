// graph-compiler: products with vectors, from either side, and a dot product.
func.func @entry(%m: tensor<64x32xf32>, %x: tensor<32xf32>, %y: tensor<64xf32>, %a: tensor<64xf32>, %b: tensor<32xf32>, %s: tensor<f32>) -> (tensor<64xf32>, tensor<32xf32>, tensor<f32>) {
  %0 = linalg.matvec ins(%m, %x : tensor<64x32xf32>, tensor<32xf32>) outs(%a : tensor<64xf32>) -> tensor<64xf32>
  %1 = linalg.vecmat ins(%y, %m : tensor<64xf32>, tensor<64x32xf32>) outs(%b : tensor<32xf32>) -> tensor<32xf32>
  %2 = linalg.dot ins(%1, %x : tensor<32xf32>, tensor<32xf32>) outs(%s : tensor<f32>) -> tensor<f32>
  return %0, %1, %2 : tensor<64xf32>, tensor<32xf32>, tensor<f32>
}
