// RUN: fp8-opt %s --fp8-convert-gemms-to-runtime --split-input-file | FileCheck %s

// CHECK-NOT:   fp8rt_gemm_f32

// CHECK-LABEL: @tensors
// CHECK:         linalg.matmul
func.func @tensors(%a: tensor<4x8xf32>, %b: tensor<8x16xf32>,
                   %c: tensor<4x16xf32>) -> tensor<4x16xf32> {
  %0 = linalg.matmul ins(%a, %b : tensor<4x8xf32>, tensor<8x16xf32>)
                     outs(%c : tensor<4x16xf32>) -> tensor<4x16xf32>
  return %0 : tensor<4x16xf32>
}

// CHECK-LABEL: @other_element_types
// CHECK:         linalg.matmul
func.func @other_element_types(%a: memref<4x8xbf16>, %b: memref<8x16xbf16>,
                               %c: memref<4x16xf32>) {
  linalg.matmul ins(%a, %b : memref<4x8xbf16>, memref<8x16xbf16>)
                outs(%c : memref<4x16xf32>)
  return
}

// CHECK-LABEL: @other_memory_space
// CHECK:         linalg.matmul
func.func @other_memory_space(%a: memref<4x8xf32, 1>, %b: memref<8x16xf32>,
                              %c: memref<4x16xf32>) {
  linalg.matmul ins(%a, %b : memref<4x8xf32, 1>, memref<8x16xf32>)
                outs(%c : memref<4x16xf32>)
  return
}

// CHECK-LABEL: @not_strided
// CHECK:         linalg.matmul
#tiled = affine_map<(i, j) -> (i floordiv 2, j, i mod 2)>
func.func @not_strided(%a: memref<4x8xf32, #tiled>, %b: memref<8x16xf32>,
                       %c: memref<4x16xf32>) {
  linalg.matmul ins(%a, %b : memref<4x8xf32, #tiled>, memref<8x16xf32>)
                outs(%c : memref<4x16xf32>)
  return
}

// CHECK-LABEL: @result_is_an_operand
// CHECK:         linalg.matmul
func.func @result_is_an_operand(%a: memref<8x8xf32>, %b: memref<8x8xf32>) {
  linalg.matmul ins(%a, %b : memref<8x8xf32>, memref<8x8xf32>)
                outs(%a : memref<8x8xf32>)
  return
}

// linalg takes this for a contraction: it looks through unary operations.
// CHECK-LABEL: @more_than_multiply_and_add
// CHECK:         linalg.generic
func.func @more_than_multiply_and_add(
    %a: memref<4x8xf32>, %b: memref<16x8xf32>, %c: memref<4x16xf32>) {
  linalg.generic
      {indexing_maps = [affine_map<(m, n, k) -> (m, k)>,
                        affine_map<(m, n, k) -> (n, k)>,
                        affine_map<(m, n, k) -> (m, n)>],
       iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : memref<4x8xf32>, memref<16x8xf32>)
      outs(%c : memref<4x16xf32>) {
  ^bb0(%x: f32, %y: f32, %sum: f32):
    %negated = arith.negf %x : f32
    %product = arith.mulf %negated, %y : f32
    %next = arith.addf %sum, %product : f32
    linalg.yield %next : f32
  }
  return
}

// CHECK-LABEL: @reduction_of_one_operand
// CHECK:         linalg.generic
func.func @reduction_of_one_operand(
    %a: memref<4x8x2xf32>, %b: memref<16x8xf32>, %c: memref<4x16xf32>) {
  linalg.generic
      {indexing_maps = [affine_map<(m, n, k, r) -> (m, k, r)>,
                        affine_map<(m, n, k, r) -> (n, k)>,
                        affine_map<(m, n, k, r) -> (m, n)>],
       iterator_types = ["parallel", "parallel", "reduction", "reduction"]}
      ins(%a, %b : memref<4x8x2xf32>, memref<16x8xf32>)
      outs(%c : memref<4x16xf32>) {
  ^bb0(%x: f32, %y: f32, %sum: f32):
    %product = arith.mulf %x, %y : f32
    %next = arith.addf %sum, %product : f32
    linalg.yield %next : f32
  }
  return
}

// -----

// CHECK-LABEL: @name_is_taken
// CHECK:         linalg.matmul
func.func @name_is_taken(%a: memref<4x8xf32>, %b: memref<8x16xf32>,
                         %c: memref<4x16xf32>) {
  linalg.matmul ins(%a, %b : memref<4x8xf32>, memref<8x16xf32>)
                outs(%c : memref<4x16xf32>)
  return
}
func.func private @fp8rt_gemm_f32(f32)
