// JAX: an iota compared with lengths, select, and a softmax's pieces, then the product.
#s = affine_map<(b, t) -> (b, t)>
#r = affine_map<(b, t) -> (b)>
func.func public @main(%x: tensor<8x32xf32>, %lengths: tensor<8xi32>, %v: tensor<32x16xf32>, %y: tensor<8x16xf32>) -> tensor<8x16xf32> {
  %low = arith.constant -1.0e+9 : f32
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8x32xf32>
  %re = tensor.empty() : tensor<8xf32>
  %masked = linalg.generic {indexing_maps = [#s, #r, #s], iterator_types = ["parallel", "parallel"]} ins(%x, %lengths : tensor<8x32xf32>, tensor<8xi32>) outs(%e : tensor<8x32xf32>) {
  ^bb0(%a: f32, %n: i32, %o: f32):
    %t = linalg.index 1 : index
    %i = arith.index_cast %t : index to i32
    %in = arith.cmpi slt, %i, %n : i32
    %m = arith.select %in, %a, %low : f32
    linalg.yield %m : f32
  } -> tensor<8x32xf32>
  %rl = linalg.fill ins(%low : f32) outs(%re : tensor<8xf32>) -> tensor<8xf32>
  %max = linalg.reduce { arith.maximumf } ins(%masked : tensor<8x32xf32>) outs(%rl : tensor<8xf32>) dimensions = [1]
  %exp = linalg.generic {indexing_maps = [#s, #r, #s], iterator_types = ["parallel", "parallel"]} ins(%masked, %max : tensor<8x32xf32>, tensor<8xf32>) outs(%e : tensor<8x32xf32>) {
  ^bb0(%a: f32, %m: f32, %o: f32):
    %d = arith.subf %a, %m : f32
    %p = math.exp %d : f32
    linalg.yield %p : f32
  } -> tensor<8x32xf32>
  %rz = linalg.fill ins(%zero : f32) outs(%re : tensor<8xf32>) -> tensor<8xf32>
  %sum = linalg.reduce { arith.addf } ins(%exp : tensor<8x32xf32>) outs(%rz : tensor<8xf32>) dimensions = [1]
  %share = linalg.generic {indexing_maps = [#s, #r, #s], iterator_types = ["parallel", "parallel"]} ins(%exp, %sum : tensor<8x32xf32>, tensor<8xf32>) outs(%e : tensor<8x32xf32>) {
  ^bb0(%a: f32, %n: f32, %o: f32):
    %p = arith.divf %a, %n : f32
    linalg.yield %p : f32
  } -> tensor<8x32xf32>
  %0 = linalg.matmul ins(%share, %v : tensor<8x32xf32>, tensor<32x16xf32>) outs(%y : tensor<8x16xf32>) -> tensor<8x16xf32>
  return %0 : tensor<8x16xf32>
}
