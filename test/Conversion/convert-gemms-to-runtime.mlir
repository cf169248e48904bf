// RUN: fp8-opt %s --fp8-convert-gemms-to-runtime --canonicalize | FileCheck %s

// CHECK:       func.func private @fp8rt_gemm_f32(
// CHECK-SAME:    memref<?x?x?xf32, strided<[?, ?, ?], offset: ?>>
// CHECK-SAME:    attributes {llvm.emit_c_interface}

// B is handed over as N x K: its strides change places.
// CHECK-LABEL: @matmul
// CHECK-SAME:    (%[[A:.*]]: memref<4x8xf32>, %[[B:.*]]: memref<8x16xf32>, %[[C:.*]]: memref<4x16xf32>)
// CHECK-DAG:     %[[A3:.*]] = memref.reinterpret_cast %[[A]] to offset: [0], sizes: [1, 4, 8], strides: [0, 8, 1]
// CHECK-DAG:     %[[B3:.*]] = memref.reinterpret_cast %[[B]] to offset: [0], sizes: [1, 16, 8], strides: [0, 1, 16]
// CHECK-DAG:     %[[C3:.*]] = memref.reinterpret_cast %[[C]] to offset: [0], sizes: [1, 4, 16], strides: [0, 16, 1]
// CHECK-DAG:     %[[CAST_A:.*]] = memref.cast %[[A3]]
// CHECK-DAG:     %[[CAST_B:.*]] = memref.cast %[[B3]]
// CHECK-DAG:     %[[CAST_C:.*]] = memref.cast %[[C3]]
// CHECK:         call @fp8rt_gemm_f32(%[[CAST_A]], %[[CAST_B]], %[[CAST_C]])
// CHECK-NOT:     linalg.
func.func @matmul(%a: memref<4x8xf32>, %b: memref<8x16xf32>,
                  %c: memref<4x16xf32>) {
  linalg.matmul ins(%a, %b : memref<4x8xf32>, memref<8x16xf32>)
                outs(%c : memref<4x16xf32>)
  return
}

// CHECK-LABEL: @transposed_operands_and_result
// CHECK-DAG:     sizes: [1, 4, 8], strides: [0, 1, 4]
// CHECK-DAG:     sizes: [1, 16, 8], strides: [0, 8, 1]
// CHECK-DAG:     sizes: [1, 4, 16], strides: [0, 1, 4]
// CHECK:         call @fp8rt_gemm_f32
func.func @transposed_operands_and_result(
    %a: memref<8x4xf32>, %b: memref<16x8xf32>, %c: memref<16x4xf32>) {
  linalg.contract
      indexing_maps = [affine_map<(m, n, k) -> (k, m)>,
                       affine_map<(m, n, k) -> (n, k)>,
                       affine_map<(m, n, k) -> (n, m)>]
      ins(%a, %b : memref<8x4xf32>, memref<16x8xf32>)
      outs(%c : memref<16x4xf32>)
  return
}

// CHECK-LABEL: @dynamic_sizes_strides_and_offset
// CHECK-SAME:    (%[[A:.*]]: memref<?x?xf32, strided<[?, 1], offset: ?>>
// CHECK:         %{{.*}}, %[[OFFSET:.*]], %{{.*}}:2, %[[STRIDES:.*]]:2 = memref.extract_strided_metadata %[[A]]
// CHECK:         memref.reinterpret_cast %[[A]] to offset: [%[[OFFSET]]], sizes: [1, %{{.*}}, %{{.*}}], strides: [0, %[[STRIDES]]#0, 1]
// CHECK:         call @fp8rt_gemm_f32
func.func @dynamic_sizes_strides_and_offset(
    %a: memref<?x?xf32, strided<[?, 1], offset: ?>>, %b: memref<?x?xf32>,
    %c: memref<?x?xf32>) {
  linalg.matmul
      ins(%a, %b : memref<?x?xf32, strided<[?, 1], offset: ?>>, memref<?x?xf32>)
      outs(%c : memref<?x?xf32>)
  return
}

// CHECK-LABEL: @batch_matmul
// CHECK-SAME:    (%[[A:.*]]: memref<3x4x8xf32>, %[[B:.*]]: memref<3x8x16xf32>, %[[C:.*]]: memref<3x4x16xf32>)
// CHECK-DAG:     %[[CAST_A:.*]] = memref.cast %[[A]]
// CHECK-DAG:     %[[B3:.*]] = memref.reinterpret_cast %[[B]] to offset: [0], sizes: [3, 16, 8], strides: [128, 1, 16]
// CHECK-DAG:     %[[CAST_B:.*]] = memref.cast %[[B3]]
// CHECK-DAG:     %[[CAST_C:.*]] = memref.cast %[[C]]
// CHECK-NOT:     scf.for
// CHECK:         call @fp8rt_gemm_f32(%[[CAST_A]], %[[CAST_B]], %[[CAST_C]])
func.func @batch_matmul(%a: memref<3x4x8xf32>, %b: memref<3x8x16xf32>,
                        %c: memref<3x4x16xf32>) {
  linalg.batch_matmul ins(%a, %b : memref<3x4x8xf32>, memref<3x8x16xf32>)
                      outs(%c : memref<3x4x16xf32>)
  return
}

// CHECK-LABEL: @matrix_times_vector
// CHECK-DAG:     sizes: [1, 4, 8], strides: [0, 8, 1]
// CHECK-DAG:     sizes: [1, 1, 8], strides: [0, 0, 1]
// CHECK-DAG:     sizes: [1, 4, 1], strides: [0, 1, 0]
// CHECK:         call @fp8rt_gemm_f32
func.func @matrix_times_vector(%a: memref<4x8xf32>, %x: memref<8xf32>,
                               %y: memref<4xf32>) {
  linalg.matvec ins(%a, %x : memref<4x8xf32>, memref<8xf32>)
                outs(%y : memref<4xf32>)
  return
}

// A linear layer on sequences: batch and sequence are one dimension in memory.
// CHECK-LABEL: @contiguous_dimensions_become_one
// CHECK:         %[[ROWS:.*]] = arith.muli %{{.*}}, %c5
// CHECK-DAG:     sizes: [1, %[[ROWS]], 8], strides: [0, 8, 1]
// CHECK-DAG:     sizes: [1, 16, 8], strides: [0, 8, 1]
// CHECK-DAG:     sizes: [1, %[[ROWS]], 16], strides: [0, 16, 1]
// CHECK-NOT:     scf.for
// CHECK:         call @fp8rt_gemm_f32
func.func @contiguous_dimensions_become_one(
    %a: memref<?x5x8xf32>, %b: memref<16x8xf32>, %c: memref<?x5x16xf32>) {
  linalg.generic
      {indexing_maps = [affine_map<(b, s, n, k) -> (b, s, k)>,
                        affine_map<(b, s, n, k) -> (n, k)>,
                        affine_map<(b, s, n, k) -> (b, s, n)>],
       iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%a, %b : memref<?x5x8xf32>, memref<16x8xf32>)
      outs(%c : memref<?x5x16xf32>) {
  ^bb0(%x: f32, %w: f32, %sum: f32):
    %product = arith.mulf %w, %x : f32
    %next = arith.addf %product, %sum : f32
    linalg.yield %next : f32
  }
  return
}

// Heads lie inside sequences in A and C, and outside them in B.
// CHECK-LABEL: @other_dimensions_become_loops
// CHECK:         scf.for %[[I:.*]] = %{{.*}} to %c2
// CHECK-DAG:       %[[OFFSET_A:.*]] = arith.muli %[[I]], %c160
// CHECK-DAG:       %[[OFFSET_B:.*]] = arith.muli %[[I]], %c192
// CHECK-DAG:       %[[OFFSET_C:.*]] = arith.muli %[[I]], %c120
// CHECK:           offset: [%[[OFFSET_A]]], sizes: [4, 5, 8], strides: [8, 32, 1]
// CHECK:           offset: [%[[OFFSET_B]]], sizes: [4, 6, 8], strides: [48, 8, 1]
// CHECK:           offset: [%[[OFFSET_C]]], sizes: [4, 5, 6], strides: [6, 24, 1]
// CHECK:           call @fp8rt_gemm_f32
func.func @other_dimensions_become_loops(
    %a: memref<2x5x4x8xf32>, %b: memref<2x4x6x8xf32>,
    %c: memref<2x5x4x6xf32>) {
  linalg.contract
      indexing_maps = [affine_map<(b, h, m, n, k) -> (b, m, h, k)>,
                       affine_map<(b, h, m, n, k) -> (b, h, n, k)>,
                       affine_map<(b, h, m, n, k) -> (b, m, h, n)>]
      ins(%a, %b : memref<2x5x4x8xf32>, memref<2x4x6x8xf32>)
      outs(%c : memref<2x5x4x6xf32>)
  return
}
