// RUN: fp8-opt %s --fp8-convert-gemms-to-runtime | FileCheck %s
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
  linalg.matmul {tensor_core_sums = array<i64: 1, 0, 128, 4, 1>}
      ins(%a, %b : memref<4x8xf32>, memref<8x16xf32>) outs(%c : memref<4x16xf32>)
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
