// RUN: fp8-opt %s --fp8-pipeline="recipe=current to=import" | FileCheck %s --check-prefix=IMPORT
// RUN: fp8-opt %s --fp8-pipeline="recipe=current to=recipe" | FileCheck %s --check-prefix=RECIPE
// RUN: fp8-opt %s --fp8-pipeline="recipe=current to=scaling" | FileCheck %s --check-prefix=SCALING
// RUN: fp8-opt %s --fp8-pipeline="recipe=current to=fusion" | FileCheck %s --check-prefix=FUSION
// RUN: fp8-opt %s --fp8-pipeline="recipe=current to=fusion stats" | FileCheck %s --check-prefix=STATS
// RUN: fp8-opt %s --fp8-pipeline="recipe=current to=buffers" | FileCheck %s --check-prefix=BUFFERS
// RUN: fp8-opt %s --fp8-pipeline="recipe=current to=kernels" | FileCheck %s --check-prefix=KERNELS
// RUN: fp8-opt %s --fp8-pipeline="recipe=current to=host" | FileCheck %s --check-prefix=HOST
// RUN: fp8-opt %s --pass-pipeline="builtin.module(fp8-pipeline{recipe=current to=fusion})" | FileCheck %s --check-prefix=FUSION
// RUN: fp8-opt %s --fp8-pipeline="recipe=current to=scaling" | fp8-opt --fp8-pipeline="from=fusion to=fusion" | FileCheck %s --check-prefix=FUSION
// RUN: fp8-opt %s --fp8-pipeline="recipe=current to=scaling" | fp8-opt --fp8-pipeline="from=fusion" > %t.halves
// RUN: fp8-opt %s --fp8-pipeline="recipe=current" | diff - %t.halves

// What leaves each phase, for x w and xT dy, which share the quantized x.

// IMPORT-COUNT-2: linalg.matmul {{.*}}fp8.name = "both.matmul_{{.}}", fp8.role = #fp8.role<fprop>
// IMPORT-NOT: fp8.quantize

// RECIPE-COUNT-4: fp8.quantize {{.*}} recipe(#fp8.current)
// RECIPE-NOT: fp8.quantize

// SCALING-COUNT-3: fp8.compute_scale
// SCALING-NOT: fp8.compute_scale
// SCALING: linalg.contract

// FUSION-LABEL: func.func @both
// FUSION-NOT: linalg
// FUSION: fp8.matmul {{.*}} epilogue(%arg3 : tensor<16xbf16>)
// FUSION-NOT: linalg.generic
// FUSION: fp8.matmul {{.*}} epilogue {

// STATS: fp8.stats_slots
// STATS-COUNT-3: call @fp8rt_stats_record

// BUFFERS-NOT: tensor<
// BUFFERS: memref.alloc
// BUFFERS: linalg.contract

// KERNELS-NOT: linalg.
// KERNELS: call @fp8rt_gemm_f32

// HOST: llvm.call @fp8rt_gemm_f32
// HOST-NOT: func.func

func.func @both(%x: tensor<32x64xbf16>, %w: tensor<64x16xbf16>, %y: tensor<32x16xbf16>, %bias: tensor<16xbf16>) -> (tensor<32x16xbf16>, tensor<64x16xbf16>) {
  %zero = arith.constant 0.0 : bf16
  %e = tensor.empty() : tensor<32x16xbf16>
  %b = linalg.broadcast ins(%bias : tensor<16xbf16>) outs(%e : tensor<32x16xbf16>) dimensions = [0]
  %0 = linalg.matmul ins(%x, %w : tensor<32x64xbf16>, tensor<64x16xbf16>) outs(%b : tensor<32x16xbf16>) -> tensor<32x16xbf16>
  %f = tensor.empty() : tensor<64x16xbf16>
  %c = linalg.fill ins(%zero : bf16) outs(%f : tensor<64x16xbf16>) -> tensor<64x16xbf16>
  %1 = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
      ins(%x, %y : tensor<32x64xbf16>, tensor<32x16xbf16>) outs(%c : tensor<64x16xbf16>) -> tensor<64x16xbf16>
  return %0, %1 : tensor<32x16xbf16>, tensor<64x16xbf16>
}
