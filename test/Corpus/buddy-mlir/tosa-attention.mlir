// buddy-mlir: scores and softmax in TOSA, through reductions.
func.func @attention(%q: tensor<4x16x32xf32>, %k: tensor<4x32x16xf32>, %v: tensor<4x16x32xf32>) -> tensor<4x16x32xf32> {
  %zp = "tosa.const"() <{values = dense<0.0> : tensor<1xf32>}> : () -> tensor<1xf32>
  %0 = tosa.matmul %q, %k, %zp, %zp : (tensor<4x16x32xf32>, tensor<4x32x16xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<4x16x16xf32>
  %1 = tosa.reduce_max %0 {axis = 2 : i32} : (tensor<4x16x16xf32>) -> tensor<4x16x1xf32>
  %2 = tosa.sub %0, %1 : (tensor<4x16x16xf32>, tensor<4x16x1xf32>) -> tensor<4x16x16xf32>
  %3 = tosa.exp %2 : (tensor<4x16x16xf32>) -> tensor<4x16x16xf32>
  %4 = tosa.reduce_sum %3 {axis = 2 : i32} : (tensor<4x16x16xf32>) -> tensor<4x16x1xf32>
  %5 = tosa.reciprocal %4 : (tensor<4x16x1xf32>) -> tensor<4x16x1xf32>
  %shift = "tosa.const"() <{values = dense<0> : tensor<1xi8>}> : () -> tensor<1xi8>
  %6 = tosa.mul %3, %5, %shift : (tensor<4x16x16xf32>, tensor<4x16x1xf32>, tensor<1xi8>) -> tensor<4x16x16xf32>
  %7 = tosa.matmul %6, %v, %zp, %zp : (tensor<4x16x16xf32>, tensor<4x16x32xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<4x16x32xf32>
  return %7 : tensor<4x16x32xf32>
}
