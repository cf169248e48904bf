// IREE: a decoding loop, scf.while around a matvec.
func.func @decode(%w: tensor<64x64xf32>, %x: tensor<64xf32>, %steps: i32) -> tensor<64xf32> {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant 0.0 : f32
  %r:2 = scf.while (%i = %c0, %v = %x) : (i32, tensor<64xf32>) -> (i32, tensor<64xf32>) {
    %more = arith.cmpi slt, %i, %steps : i32
    scf.condition(%more) %i, %v : i32, tensor<64xf32>
  } do {
  ^bb0(%i: i32, %v: tensor<64xf32>):
    %e = tensor.empty() : tensor<64xf32>
    %init = linalg.fill ins(%zero : f32) outs(%e : tensor<64xf32>) -> tensor<64xf32>
    %y = linalg.matvec ins(%w, %v : tensor<64x64xf32>, tensor<64xf32>) outs(%init : tensor<64xf32>) -> tensor<64xf32>
    %n = arith.addi %i, %c1 : i32
    scf.yield %n, %y : i32, tensor<64xf32>
  }
  return %r#1 : tensor<64xf32>
}
