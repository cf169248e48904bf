// RUN: fp8-opt --fp8-set-target=chip=sm_90a --fp8-select-kernels --fp8-build-kernels %s -o %t.mlir
// RUN: fp8-translate --kernels-to-ptx %t.mlir -o %t.ptx
// RUN: %ptxas -v -arch=sm_90a %t.ptx -o %t.cubin > %t.log 2>&1
// RUN: %python %S/../Inputs/check_resources.py %t.log | FileCheck %s
// REQUIRES: ptxas

// What is chosen for attention becomes machine code without spills and without wgmma that is serialized.
// With a window and sums of 256 columns some addresses do not stay in registers while keys are walked.

// CHECK: 8 kernels

func.func @f0(%q: tensor<2x?x16x64xbf16>) -> (tensor<2x?x16x64xbf16>, tensor<2x16x?xf32>) {
  %0, %1 = fp8.attention %q, %q, %q scale = 0.125  
      : tensor<2x?x16x64xbf16>, tensor<2x?x16x64xbf16>, tensor<2x?x16x64xbf16> -> tensor<2x?x16x64xbf16>, tensor<2x16x?xf32>
  return %0, %1 : tensor<2x?x16x64xbf16>, tensor<2x16x?xf32>
}

func.func @f1(%q: tensor<2x?x16x128xbf16>) -> (tensor<2x?x16x128xbf16>, tensor<2x16x?xf32>) {
  %0, %1 = fp8.attention %q, %q, %q scale = 0.125 window = [*, 0] 
      : tensor<2x?x16x128xbf16>, tensor<2x?x16x128xbf16>, tensor<2x?x16x128xbf16> -> tensor<2x?x16x128xbf16>, tensor<2x16x?xf32>
  return %0, %1 : tensor<2x?x16x128xbf16>, tensor<2x16x?xf32>
}

func.func @f2(%q: tensor<2x?x16x256xbf16>) -> (tensor<2x?x16x256xbf16>, tensor<2x16x?xf32>) {
  %0, %1 = fp8.attention %q, %q, %q scale = 0.125
      : tensor<2x?x16x256xbf16>, tensor<2x?x16x256xbf16>, tensor<2x?x16x256xbf16> -> tensor<2x?x16x256xbf16>, tensor<2x16x?xf32>
  return %0, %1 : tensor<2x?x16x256xbf16>, tensor<2x16x?xf32>
}

func.func @f3(%q: !fp8.scaled<2x?x16x64xf8E4M3FN, block = [*, *, *, *], scale = f32>) -> (tensor<2x?x16x64xbf16>, tensor<2x16x?xf32>) {
  %0, %1 = fp8.attention %q, %q, %q scale = 0.125 window = [*, 0] accumulate = fast
      : !fp8.scaled<2x?x16x64xf8E4M3FN, block = [*, *, *, *], scale = f32>, !fp8.scaled<2x?x16x64xf8E4M3FN, block = [*, *, *, *], scale = f32>, !fp8.scaled<2x?x16x64xf8E4M3FN, block = [*, *, *, *], scale = f32> -> tensor<2x?x16x64xbf16>, tensor<2x16x?xf32>
  return %0, %1 : tensor<2x?x16x64xbf16>, tensor<2x16x?xf32>
}

func.func @f4(%q: !fp8.scaled<2x?x16x128xf8E4M3FN, block = [*, *, *, *], scale = f32>) -> (tensor<2x?x16x128xbf16>, tensor<2x16x?xf32>) {
  %0, %1 = fp8.attention %q, %q, %q scale = 0.125 window = [*, 0] accumulate = fast
      : !fp8.scaled<2x?x16x128xf8E4M3FN, block = [*, *, *, *], scale = f32>, !fp8.scaled<2x?x16x128xf8E4M3FN, block = [*, *, *, *], scale = f32>, !fp8.scaled<2x?x16x128xf8E4M3FN, block = [*, *, *, *], scale = f32> -> tensor<2x?x16x128xbf16>, tensor<2x16x?xf32>
  return %0, %1 : tensor<2x?x16x128xbf16>, tensor<2x16x?xf32>
}

func.func @f5(%q: !fp8.scaled<2x?x16x128xf8E4M3FN, block = [*, *, *, *], scale = f32>) -> (tensor<2x?x16x128xbf16>, tensor<2x16x?xf32>) {
  %0, %1 = fp8.attention %q, %q, %q scale = 0.125 window = [*, 0] accumulate = promote
      : !fp8.scaled<2x?x16x128xf8E4M3FN, block = [*, *, *, *], scale = f32>, !fp8.scaled<2x?x16x128xf8E4M3FN, block = [*, *, *, *], scale = f32>, !fp8.scaled<2x?x16x128xf8E4M3FN, block = [*, *, *, *], scale = f32> -> tensor<2x?x16x128xbf16>, tensor<2x16x?xf32>
  return %0, %1 : tensor<2x?x16x128xbf16>, tensor<2x16x?xf32>
}

func.func @f6(%q: !fp8.scaled<2x?x16x256xf8E4M3FN, block = [*, *, *, *], scale = f32>) -> (tensor<2x?x16x256xbf16>, tensor<2x16x?xf32>) {
  %0, %1 = fp8.attention %q, %q, %q scale = 0.125  accumulate = fast
      : !fp8.scaled<2x?x16x256xf8E4M3FN, block = [*, *, *, *], scale = f32>, !fp8.scaled<2x?x16x256xf8E4M3FN, block = [*, *, *, *], scale = f32>, !fp8.scaled<2x?x16x256xf8E4M3FN, block = [*, *, *, *], scale = f32> -> tensor<2x?x16x256xbf16>, tensor<2x16x?xf32>
  return %0, %1 : tensor<2x?x16x256xbf16>, tensor<2x16x?xf32>
}

func.func @f7(%q: !fp8.scaled<2x?x16x192xf8E4M3FN, block = [*, *, *, *], scale = f32>) -> (tensor<2x?x16x192xbf16>, tensor<2x16x?xf32>) {
  %0, %1 = fp8.attention %q, %q, %q scale = 0.125 window = [1023, 0] accumulate = fast
      : !fp8.scaled<2x?x16x192xf8E4M3FN, block = [*, *, *, *], scale = f32>, !fp8.scaled<2x?x16x192xf8E4M3FN, block = [*, *, *, *], scale = f32>, !fp8.scaled<2x?x16x192xf8E4M3FN, block = [*, *, *, *], scale = f32> -> tensor<2x?x16x192xbf16>, tensor<2x16x?xf32>
  return %0, %1 : tensor<2x?x16x192xbf16>, tensor<2x16x?xf32>
}
