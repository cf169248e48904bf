// RUN: fp8-opt %s --fp8-pipeline="recipe=current accumulate=tensor-core to=fusion" | FileCheck %s
// RUN: fp8-opt %s --fp8-pipeline="recipe=none accumulate=tensor-core to=fusion" | FileCheck %s --check-prefix=PLAIN
// RUN: fp8-opt %s --fp8-pipeline="recipe=mxfp8 accumulate=tensor-core to=fusion" | FileCheck %s --check-prefix=BYTES
// RUN: fp8-opt %s --fp8-pipeline="recipe=current target=sm_90a accumulate=tensor-core to=fusion" | FileCheck %s --check-prefix=GPU
// RUN: fp8-opt %s --fp8-pipeline="recipe=current accumulate=tensor-core to=kernels" | FileCheck %s --check-prefix=KERNELS
// RUN: fp8-opt %s --fp8-pipeline="recipe=current accumulate=tensor-core accumulation-of=sm_100a to=fusion" | FileCheck %s --check-prefix=BLACKWELL
// RUN: fp8-opt %s --fp8-pipeline="recipe=block accumulate=tensor-core accumulation-of=sm_100a to=fusion" | FileCheck %s --check-prefix=FITTED
// RUN: fp8-opt %s --fp8-pipeline="recipe=block,pow2=false accumulate=tensor-core accumulation-of=sm_100a to=fusion" | FileCheck %s --check-prefix=PROMOTED
// RUN: fp8-opt %s --fp8-pipeline="recipe=nvfp4 accumulate=tensor-core accumulation-of=sm_100a to=fusion" | FileCheck %s --check-prefix=NVFP4
// RUN: fp8-opt %s --fp8-pipeline="recipe=current accumulate=tensor-core accumulation-of=sm_100a to=kernels" | FileCheck %s --check-prefix=TCGEN05
// RUN: fp8-opt %s --fp8-pipeline="recipe=nvfp4 accumulate=tensor-core accumulation-of=sm_100a to=kernels" | FileCheck %s --check-prefix=SCALED
// RUN: fp8-opt %s --fp8-select-accumulation 2>&1 | FileCheck %s --check-prefix=NO-MATMULS

// What a GPU's kernel would be decides; the program stays one for a CPU.
// CHECK-NOT:   fp8_gpu
// CHECK-LABEL: func.func @many_rows
// CHECK:         fp8.matmul {{.*}}tensor_core_accumulation = array<i64: 0, 0, 128, 1, 1, 0>
// CHECK-LABEL: func.func @long_k
// CHECK:         fp8.matmul {{.*}}tensor_core_accumulation = array<i64: 0, 0, 128, [[PARTS:[2-9]|1[0-9]]], 1, 0>
// CHECK-NOT:   fp8_gpu

// Products in high precision, too.
// PLAIN-LABEL: func.func @many_rows
// PLAIN:         fp8.matmul {{.*}}tensor_core_accumulation = array<i64: 3, 3, 64, 1, 0, 0>

// No kernel takes such factors: the sums are those of bf16, which operands become.
// BYTES-LABEL: func.func @many_rows
// BYTES:         fp8.matmul {{.*}}tensor_core_accumulation = array<i64: 3, 3, 64, 1, 0, 0>} : tensor<512x256xbf16>, tensor<256x512xbf16>
// BYTES-LABEL: func.func @long_k
// BYTES:         fp8.matmul {{.*}}tensor_core_accumulation = array<i64: 3, 3, 64, [[PARTS:[2-9]|1[0-9]]], 0, 0>} : tensor<8x4096xbf16>, tensor<4096x128xbf16>

// GPU:         fp8.matmul
// GPU-NOT:     tensor_core_accumulation

// KERNELS:     call @fp8rt_gemm_tensor_core

// Another GPU's are promoted where tensor cores do not multiply the factors.
// BLACKWELL-NOT:   fp8_gpu
// BLACKWELL-LABEL: func.func @many_rows
// BLACKWELL:         fp8.matmul {{.*}}tensor_core_accumulation = array<i64: 0, 0, 128, 1, 0, 1>
// BLACKWELL-LABEL: func.func @long_k
// BLACKWELL:         fp8.matmul {{.*}}tensor_core_accumulation = array<i64: 0, 0, 128, 1, 0, 1>

// Its tensor cores multiply factors that become those of 32, and have others.
// FITTED-LABEL: func.func @many_rows
// FITTED:         fp8.matmul {{.*}}tensor_core_accumulation = array<i64: 0, 0, 128, 1, 0, 1>{{.*}}block = [1, 32], scale = f8E8M0FNU>
// PROMOTED-LABEL: func.func @many_rows
// PROMOTED:         fp8.matmul {{.*}}tensor_core_accumulation = array<i64: 0, 0, 128, 1, 1, 1>{{.*}}block = [1, 128], scale = f32>
// NVFP4-LABEL: func.func @many_rows
// NVFP4:         fp8.matmul {{.*}}tensor_core_accumulation = array<i64: 5, 5, 256, 1, 0, 1>

// TCGEN05:     call @fp8rt_gemm_tcgen05(

// SCALED:      call @fp8rt_gemm_tcgen05_scaled

// NO-MATMULS:  linalg.matmul

func.func @many_rows(%x: tensor<512x256xbf16>, %w: tensor<256x512xbf16>) -> tensor<512x512xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<512x512xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<512x512xf32>) -> tensor<512x512xf32>
  %0 = linalg.matmul ins(%x, %w : tensor<512x256xbf16>, tensor<256x512xbf16>)
                     outs(%zeros : tensor<512x512xf32>) -> tensor<512x512xf32>
  return %0 : tensor<512x512xf32>
}

func.func @long_k(%x: tensor<8x4096xbf16>, %w: tensor<4096x128xbf16>) -> tensor<8x128xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<8x128xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<8x128xf32>) -> tensor<8x128xf32>
  %0 = linalg.matmul ins(%x, %w : tensor<8x4096xbf16>, tensor<4096x128xbf16>)
                     outs(%zeros : tensor<8x128xf32>) -> tensor<8x128xf32>
  return %0 : tensor<8x128xf32>
}
