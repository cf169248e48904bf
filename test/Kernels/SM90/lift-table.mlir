// RUN: fp8-opt --fp8-set-target=chip=sm_90a --fp8-select-kernels="%every_candidate" --fp8-build-kernels %s --emit-bytecode -o %t.mlirbc
// RUN: fp8-translate --kernels-to-ptx %t.mlirbc -o %t.ptx
// RUN: %ptxas -v -arch=sm_90a %t.ptx -o %t.cubin > %t.log 2>&1
// RUN: %python %S/../Inputs/check_resources.py %t.log | FileCheck %s
// REQUIRES: ptxas

// Products that read codes, decoded by lifters or in registers, and those with
// sums of 32, of few rows and of many: no spills, no wgmma that is serialized.

// CHECK: {{[0-9][0-9]+}} kernels

!w = !fp8.scaled<4096x4096xf8E4M3FN, block = [1, 32], scale = f8E8M0FNU>
!n = !fp8.scaled<4096x4096xf4E2M1FN, block = [1, 16], scale = f8E4M3FN, tensor_scale = f32>

func.func @mxfp8_few(%a: tensor<16x4096xbf16>, %w: !w) -> tensor<16x4096xbf16> {
  %b = fp8.dequantize %w {fp8.folded} : !w -> tensor<4096x4096xbf16>
  %0 = fp8.matmul %a, %b accumulate = fast : tensor<16x4096xbf16>, tensor<4096x4096xbf16> -> tensor<16x4096xbf16>
  return %0 : tensor<16x4096xbf16>
}

func.func @mxfp8_some(%a: tensor<200x4096xbf16>, %w: !w) -> tensor<200x4096xbf16> {
  %b = fp8.dequantize %w {fp8.folded} : !w -> tensor<4096x4096xbf16>
  %0 = fp8.matmul %a, %b accumulate = fast : tensor<200x4096xbf16>, tensor<4096x4096xbf16> -> tensor<200x4096xbf16>
  return %0 : tensor<200x4096xbf16>
}

func.func @mxfp8_many(%a: tensor<4096x4096xbf16>, %w: !w) -> tensor<4096x4096xbf16> {
  %b = fp8.dequantize %w {fp8.folded} : !w -> tensor<4096x4096xbf16>
  %0 = fp8.matmul %a, %b accumulate = fast : tensor<4096x4096xbf16>, tensor<4096x4096xbf16> -> tensor<4096x4096xbf16>
  return %0 : tensor<4096x4096xbf16>
}

func.func @nvfp4_few(%a: tensor<60x4096xbf16>, %c: tensor<4096x4096xf4E2M1FN>, %f: tensor<4096x256xf8E4M3FN>) -> tensor<60x4096xbf16> {
  %one = arith.constant dense<1.0> : tensor<1x1xf32>
  %w = fp8.assemble %c, %f, %one : tensor<4096x4096xf4E2M1FN>, tensor<4096x256xf8E4M3FN>, tensor<1x1xf32> -> !n
  %b = fp8.dequantize %w {fp8.folded} : !n -> tensor<4096x4096xbf16>
  %0 = fp8.matmul %a, %b accumulate = fast : tensor<60x4096xbf16>, tensor<4096x4096xbf16> -> tensor<60x4096xbf16>
  return %0 : tensor<60x4096xbf16>
}

func.func @nvfp4_many(%a: tensor<2000x4096xbf16>, %c: tensor<4096x4096xf4E2M1FN>, %f: tensor<4096x256xf8E4M3FN>) -> tensor<2000x4096xbf16> {
  %one = arith.constant dense<1.0> : tensor<1x1xf32>
  %w = fp8.assemble %c, %f, %one : tensor<4096x4096xf4E2M1FN>, tensor<4096x256xf8E4M3FN>, tensor<1x1xf32> -> !n
  %b = fp8.dequantize %w {fp8.folded} : !n -> tensor<4096x4096xbf16>
  %0 = fp8.matmul %a, %b accumulate = fast : tensor<2000x4096xbf16>, tensor<4096x4096xbf16> -> tensor<2000x4096xbf16>
  return %0 : tensor<2000x4096xbf16>
}

func.func @microscaled(%a: !fp8.scaled<16x4096xf8E4M3FN, block = [1, 32], scale = f8E8M0FNU>, %w: !w) -> tensor<16x4096xbf16> {
  %0 = fp8.matmul %a, %w : !fp8.scaled<16x4096xf8E4M3FN, block = [1, 32], scale = f8E8M0FNU>, !w -> tensor<16x4096xbf16>
  return %0 : tensor<16x4096xbf16>
}
