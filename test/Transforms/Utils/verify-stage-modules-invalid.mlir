// RUN: fp8-opt %s --fp8-pipeline="recipe=current to=import" --verify-diagnostics

// Files of several modules, as tests of other projects have them.

// expected-error @below {{expected functions in the program itself, but got a module in it: compile each by itself}}
module {
  func.func @first(%a: tensor<4x16xf32>, %b: tensor<16x8xf32>, %c: tensor<4x8xf32>) -> tensor<4x8xf32> {
    %0 = linalg.matmul ins(%a, %b : tensor<4x16xf32>, tensor<16x8xf32>) outs(%c : tensor<4x8xf32>) -> tensor<4x8xf32>
    return %0 : tensor<4x8xf32>
  }
}
module {
  func.func @second(%x: f32) -> f32 {
    return %x : f32
  }
}
