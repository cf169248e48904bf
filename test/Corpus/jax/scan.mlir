// JAX: lax.scan over layers, a while loop that slices one weight after the other.
func.func public @main(%ws: tensor<3x64x64xf32>, %x: tensor<16x64xf32>) -> tensor<16x64xf32> {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c3 = arith.constant 3 : i32
  %zero = arith.constant 0.0 : f32
  %r:2 = scf.while (%i = %c0, %h = %x) : (i32, tensor<16x64xf32>) -> (i32, tensor<16x64xf32>) {
    %more = arith.cmpi slt, %i, %c3 : i32
    scf.condition(%more) %i, %h : i32, tensor<16x64xf32>
  } do {
  ^bb0(%i: i32, %h: tensor<16x64xf32>):
    %n = arith.index_cast %i : i32 to index
    %w = tensor.extract_slice %ws[%n, 0, 0] [1, 64, 64] [1, 1, 1] : tensor<3x64x64xf32> to tensor<64x64xf32>
    %e = tensor.empty() : tensor<16x64xf32>
    %init = linalg.fill ins(%zero : f32) outs(%e : tensor<16x64xf32>) -> tensor<16x64xf32>
    %y = linalg.matmul ins(%h, %w : tensor<16x64xf32>, tensor<64x64xf32>) outs(%init : tensor<16x64xf32>) -> tensor<16x64xf32>
    %next = arith.addi %i, %c1 : i32
    scf.yield %next, %y : i32, tensor<16x64xf32>
  }
  return %r#1 : tensor<16x64xf32>
}
