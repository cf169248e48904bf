func.func @add(%x: tensor<1xf32>, %y: tensor<1xf32>) -> tensor<1xf32> {
  %0 = arith.subf %x, %y : tensor<1xf32>
  return %0 : tensor<1xf32>
}
