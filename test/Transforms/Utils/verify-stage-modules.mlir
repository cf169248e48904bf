// RUN: fp8-opt %s --fp8-pipeline="recipe=current to=host" | FileCheck %s

// A module without functions is no part of a program that a phase could miss.

// CHECK: llvm.func @f
module {
  module @meta {
  }
  func.func @f(%a: tensor<4x16xf32>, %b: tensor<16x8xf32>, %c: tensor<4x8xf32>) -> tensor<4x8xf32> {
    %0 = linalg.matmul ins(%a, %b : tensor<4x16xf32>, tensor<16x8xf32>) outs(%c : tensor<4x8xf32>) -> tensor<4x8xf32>
    return %0 : tensor<4x8xf32>
  }
}
