// RUN: fp8-opt %s --fp8-convert-gemms-to-runtime --cse | FileCheck %s
// RUN: fp8-opt %s --fp8-convert-gemms-to-runtime=in-warps | FileCheck %s --check-prefix=WARPS

// A product that says how a kernel adds up is called with that.
// CHECK-LABEL: @of_a_kernel
// CHECK-DAG:     %[[E5M2:.*]] = arith.constant 1 : i32
// CHECK-DAG:     %[[E4M3:.*]] = arith.constant 0 : i32
// CHECK-DAG:     %[[BLOCK:.*]] = arith.constant 128 : i32
// CHECK-DAG:     %[[PARTS:.*]] = arith.constant 4 : i32
// CHECK:         call @fp8rt_gemm_tensor_core(%{{.*}}, %{{.*}}, %{{.*}}, %[[E5M2]], %[[E4M3]], %[[BLOCK]], %[[PARTS]], %{{.*}}) : (memref<?x?x?xf32, strided<[?, ?, ?], offset: ?>>, memref<?x?x?xf32, strided<[?, ?, ?], offset: ?>>, memref<?x?x?xf32, strided<[?, ?, ?], offset: ?>>, i32, i32, i32, i32, i32) -> ()
// WARPS-LABEL: @of_a_kernel
// WARPS:         call @fp8rt_gemm_tensor_core
func.func @of_a_kernel(%a: memref<4x8xf32>, %b: memref<8x16xf32>, %c: memref<4x16xf32>) {
  linalg.matmul {tensor_core_accumulation = array<i64: 1, 0, 128, 4, 1, 0>}
      ins(%a, %b : memref<4x8xf32>, memref<8x16xf32>) outs(%c : memref<4x16xf32>)
  return
}

// Blackwell's sums are others, and nothing is promoted.
// CHECK-LABEL: @of_another_kernel
// CHECK:         call @fp8rt_gemm_tcgen05(%{{.*}}, %{{.*}}, %{{.*}}, %c1_i32, %c0_i32, %c128_i32, %c4_i32) :
func.func @of_another_kernel(%a: memref<4x8xf32>, %b: memref<8x16xf32>, %c: memref<4x16xf32>) {
  linalg.matmul {tensor_core_accumulation = array<i64: 1, 0, 128, 4, 0, 1>}
      ins(%a, %b : memref<4x8xf32>, memref<8x16xf32>) outs(%c : memref<4x16xf32>)
  return
}

// One of products with their factors says of how many elements each is.
// CHECK-LABEL: @with_factors
// CHECK:         %[[A:.*]] = memref.reinterpret_cast %{{.*}} to offset: [%c0], sizes: [%c1, %c4, %c128], strides: [%c0, %c128, %c1]
// CHECK:         %[[FA:.*]] = memref.reinterpret_cast %{{.*}} to offset: [%c0], sizes: [%c1, %c4, %c4], strides: [%c0, %c4, %c1]
// CHECK:         %[[B:.*]] = memref.reinterpret_cast %{{.*}} to offset: [%c0], sizes: [%c1, %c8, %c128], strides: [%c0, %c1, %c8]
// CHECK:         %[[FB:.*]] = memref.reinterpret_cast %{{.*}} to offset: [%c0], sizes: [%c1, %c8, %c4], strides: [%c0, %c4, %c1]
// CHECK:         %[[C:.*]] = memref.reinterpret_cast %{{.*}} to offset: [%c0], sizes: [%c1, %c4, %c8], strides: [%c0, %c8, %c1]
// CHECK:         call @fp8rt_gemm_tcgen05_scaled(%[[A]], %[[B]], %[[FA]], %[[FB]], %[[C]], %c0_i32, %c1_i32, %c32_i32, %c128_i32, %c2_i32) :
func.func @with_factors(%a: memref<4x128xf32>, %fa: memref<4x4xf32>, %b: memref<128x8xf32>, %fb: memref<1x8x4xf32>, %c: memref<4x8xf32>) {
  linalg.generic {
      indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (m, k floordiv 32)>,
                       affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (0, n, k floordiv 32)>,
                       affine_map<(m, n, k) -> (m, n)>],
      iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %fa, %b, %fb : memref<4x128xf32>, memref<4x4xf32>, memref<128x8xf32>, memref<1x8x4xf32>)
      outs(%c : memref<4x8xf32>) attrs = {tensor_core_accumulation = array<i64: 0, 1, 128, 2, 0, 1>} {
  ^bb0(%x: f32, %fx: f32, %y: f32, %fy: f32, %sum: f32):
    %0 = arith.mulf %x, %fx : f32
    %1 = arith.mulf %y, %fy : f32
    %2 = arith.mulf %0, %1 : f32
    %3 = arith.addf %sum, %2 : f32
    linalg.yield %3 : f32
  }
  return
}

// CHECK-LABEL: @of_none
// CHECK:         call @fp8rt_gemm_f32(
// WARPS-LABEL: @of_none
// WARPS:         call @fp8rt_gemm_warp(%{{.*}}, %{{.*}}, %{{.*}}) :
func.func @of_none(%a: memref<4x8xf32>, %b: memref<8x16xf32>, %c: memref<4x16xf32>) {
  linalg.matmul ins(%a, %b : memref<4x8xf32>, memref<8x16xf32>) outs(%c : memref<4x16xf32>)
  return
}
