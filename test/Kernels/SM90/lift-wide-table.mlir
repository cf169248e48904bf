// RUN: fp8-opt --fp8-set-target=chip=sm_90a --fp8-select-kernels="%every_candidate" --fp8-build-kernels %s --emit-bytecode -o %t.mlirbc
// RUN: fp8-translate --kernels-to-ptx %t.mlirbc -o %t.ptx
// RUN: %ptxas -v -arch=sm_90a %t.ptx -o %t.cubin > %t.log 2>&1
// RUN: %python %S/../Inputs/check_resources.py %t.log | FileCheck %s
// REQUIRES: ptxas

// Products that read codes which are multiplied in f32 and rounded, E4M3 with
// factors of 128x128 and codes that become f16, plain and arranged, of few rows
// and of many: no spills, no wgmma that is serialized.

// CHECK: {{[0-9]+}} kernels

func.func @blocks_some_arranged(%a: tensor<200x4096xbf16>, %c: tensor<4096x4096xf8E4M3FN> {fp8.arranged = 1}, %f: tensor<32x32xf32>) -> tensor<200x4096xbf16> {
  %w = fp8.assemble %c, %f : tensor<4096x4096xf8E4M3FN>, tensor<32x32xf32> -> !fp8.scaled<4096x4096xf8E4M3FN, block = [128, 128], scale = f32>
  %b = fp8.dequantize %w {fp8.folded} : !fp8.scaled<4096x4096xf8E4M3FN, block = [128, 128], scale = f32> -> tensor<4096x4096xbf16>
  %0 = fp8.matmul %a, %b accumulate = fast : tensor<200x4096xbf16>, tensor<4096x4096xbf16> -> tensor<200x4096xbf16>
  return %0 : tensor<200x4096xbf16>
}

func.func @mxfp8_f16(%a: tensor<2048x4096xf16>, %c: tensor<4096x4096xf8E4M3FN>, %f: tensor<4096x128xf8E8M0FNU>) -> tensor<2048x4096xf16> {
  %w = fp8.assemble %c, %f : tensor<4096x4096xf8E4M3FN>, tensor<4096x128xf8E8M0FNU> -> !fp8.scaled<4096x4096xf8E4M3FN, block = [1, 32], scale = f8E8M0FNU>
  %b = fp8.dequantize %w {fp8.folded} : !fp8.scaled<4096x4096xf8E4M3FN, block = [1, 32], scale = f8E8M0FNU> -> tensor<4096x4096xf16>
  %0 = fp8.matmul %a, %b accumulate = fast : tensor<2048x4096xf16>, tensor<4096x4096xf16> -> tensor<2048x4096xf16>
  return %0 : tensor<2048x4096xf16>
}

func.func @nvfp4_f16_arranged(%a: tensor<60x4096xf16>, %c: tensor<4096x4096xf4E2M1FN> {fp8.arranged = 1}, %f: tensor<4096x256xf8E4M3FN>) -> tensor<60x4096xf16> {
  %one = arith.constant dense<1.0> : tensor<1x1xf32>
  %w = fp8.assemble %c, %f, %one : tensor<4096x4096xf4E2M1FN>, tensor<4096x256xf8E4M3FN>, tensor<1x1xf32> -> !fp8.scaled<4096x4096xf4E2M1FN, block = [1, 16], scale = f8E4M3FN, tensor_scale = f32>
  %b = fp8.dequantize %w {fp8.folded} : !fp8.scaled<4096x4096xf4E2M1FN, block = [1, 16], scale = f8E4M3FN, tensor_scale = f32> -> tensor<4096x4096xf16>
  %0 = fp8.matmul %a, %b accumulate = fast : tensor<60x4096xf16>, tensor<4096x4096xf16> -> tensor<60x4096xf16>
  return %0 : tensor<60x4096xf16>
}
