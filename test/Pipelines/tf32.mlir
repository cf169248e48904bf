// RUN: fp8-opt %s --fp8-pipeline="recipe=none target=sm_90a tf32 to=buffers" | FileCheck %s
// RUN: fp8-opt %s --fp8-pipeline="recipe=none target=sm_90a to=buffers" | FileCheck %s --check-prefix=EXACT --implicit-check-not=fp8_gpu.launch

// Products of f32 are computed by tensor cores only for who asks; a weight that
// lies as [in, out] is transposed by a kernel, too.

// CHECK-LABEL: func.func @linear
// CHECK:       fp8_gpu.launch @fp8_kernels::@fp8_transpose_sm90a_b4
// CHECK:       fp8_gpu.launch @fp8_kernels::@fp8_matmul_sm90a_f32_f32_
// CHECK:       llvm.func @fp8_matmul_sm90a_f32_f32_
// CHECK:       nvvm.wgmma.mma_async {{.*}} A[<tf32>,

// EXACT-LABEL: func.func @linear
// EXACT:       linalg.{{matmul|contract|generic}}
func.func @linear(%x: tensor<128x256xf32>, %w: tensor<256x64xf32>) -> tensor<128x64xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<128x64xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<128x64xf32>) -> tensor<128x64xf32>
  %0 = linalg.matmul
       ins(%x, %w : tensor<128x256xf32>, tensor<256x64xf32>) outs(%zeros : tensor<128x64xf32>) -> tensor<128x64xf32>
  return %0 : tensor<128x64xf32>
}
