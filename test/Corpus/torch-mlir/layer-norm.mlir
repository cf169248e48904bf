// torch-mlir: a layer norm of generics, statistics in f32, in front of a bf16 linear.
#x = affine_map<(r, c) -> (r, c)>
#r = affine_map<(r, c) -> (r, 0)>
#c = affine_map<(r, c) -> (c)>
func.func @forward(%x: tensor<16x64xbf16>, %gain: tensor<64xbf16>, %w: tensor<64x64xbf16>, %y: tensor<16x64xbf16>) -> tensor<16x64xbf16> {
  %zero = arith.constant 0.0 : f32
  %n = arith.constant 64.0 : f32
  %eps = arith.constant 1.0e-5 : f32
  %se = tensor.empty() : tensor<16x1xf32>
  %s0 = linalg.fill ins(%zero : f32) outs(%se : tensor<16x1xf32>) -> tensor<16x1xf32>
  %sum = linalg.generic {indexing_maps = [#x, #r], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<16x64xbf16>) outs(%s0 : tensor<16x1xf32>) {
  ^bb0(%v: bf16, %acc: f32):
    %f = arith.extf %v : bf16 to f32
    %a = arith.addf %f, %acc : f32
    linalg.yield %a : f32
  } -> tensor<16x1xf32>
  %square = linalg.generic {indexing_maps = [#x, #r, #r], iterator_types = ["parallel", "reduction"]} ins(%x, %sum : tensor<16x64xbf16>, tensor<16x1xf32>) outs(%s0 : tensor<16x1xf32>) {
  ^bb0(%v: bf16, %t: f32, %acc: f32):
    %f = arith.extf %v : bf16 to f32
    %m = arith.divf %t, %n : f32
    %d = arith.subf %f, %m : f32
    %q = arith.mulf %d, %d : f32
    %a = arith.addf %q, %acc : f32
    linalg.yield %a : f32
  } -> tensor<16x1xf32>
  %e = tensor.empty() : tensor<16x64xbf16>
  %norm = linalg.generic {indexing_maps = [#x, #r, #r, #c, #x], iterator_types = ["parallel", "parallel"]} ins(%x, %sum, %square, %gain : tensor<16x64xbf16>, tensor<16x1xf32>, tensor<16x1xf32>, tensor<64xbf16>) outs(%e : tensor<16x64xbf16>) {
  ^bb0(%v: bf16, %t: f32, %q: f32, %g: bf16, %o: bf16):
    %f = arith.extf %v : bf16 to f32
    %m = arith.divf %t, %n : f32
    %d = arith.subf %f, %m : f32
    %var = arith.divf %q, %n : f32
    %safe = arith.addf %var, %eps : f32
    %inv = math.rsqrt %safe : f32
    %p = arith.mulf %d, %inv : f32
    %gf = arith.extf %g : bf16 to f32
    %z = arith.mulf %p, %gf : f32
    %b = arith.truncf %z : f32 to bf16
    linalg.yield %b : bf16
  } -> tensor<16x64xbf16>
  %0 = linalg.matmul ins(%norm, %w : tensor<16x64xbf16>, tensor<64x64xbf16>) outs(%y : tensor<16x64xbf16>) -> tensor<16x64xbf16>
  return %0 : tensor<16x64xbf16>
}
