// RUN: %python %S/Inputs/check.py %s --recipe=none --max-error=1e-5
// RUN: %python %S/Inputs/check.py %s --recipe=current --max-error=0.1

// Control flow on tensors: a loop over layers that calls a function, with the
// weights of a layer sliced out of one tensor, and a branch.

func.func private @layer(%x: tensor<8x32xf32>, %w: tensor<32x32xf32>) -> tensor<8x32xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<8x32xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<8x32xf32>) -> tensor<8x32xf32>
  %0 = linalg.matmul ins(%x, %w : tensor<8x32xf32>, tensor<32x32xf32>) outs(%init : tensor<8x32xf32>) -> tensor<8x32xf32>
  return %0 : tensor<8x32xf32>
}

func.func @main(%x: tensor<8x32xf32>, %weights: tensor<3x32x32xf32>) -> tensor<8x32xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %0 = scf.for %i = %c0 to %c3 step %c1 iter_args(%y = %x) -> (tensor<8x32xf32>) {
    %w = tensor.extract_slice %weights[%i, 0, 0] [1, 32, 32] [1, 1, 1] : tensor<3x32x32xf32> to tensor<32x32xf32>
    %h = func.call @layer(%y, %w) : (tensor<8x32xf32>, tensor<32x32xf32>) -> tensor<8x32xf32>
    %is_first = arith.cmpi eq, %i, %c0 : index
    %next = scf.if %is_first -> (tensor<8x32xf32>) {
      scf.yield %h : tensor<8x32xf32>
    } else {
      %zeros = arith.constant dense<0.0> : tensor<8x32xf32>
      %t = arith.maximumf %h, %zeros : tensor<8x32xf32>
      scf.yield %t : tensor<8x32xf32>
    }
    scf.yield %next : tensor<8x32xf32>
  }
  return %0 : tensor<8x32xf32>
}
