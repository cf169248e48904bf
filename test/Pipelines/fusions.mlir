// RUN: fp8-opt %s --fp8-pipeline="recipe=current target=sm_90a to=fusion" | FileCheck %s --check-prefix=GPU
// RUN: fp8-opt %s --fp8-pipeline="recipe=current target=sm_90a to=buffers" 2>/dev/null | FileCheck %s --check-prefix=BUFFERS --implicit-check-not=fp8.fusion
// RUN: fp8-opt %s --fp8-pipeline="recipe=current target=cpu to=fusion" | FileCheck %s --check-prefix=CPU --implicit-check-not=fp8.fusion

// For a GPU, what casts and measures stands together by the end of phase 4; in
// phase 5 each is a launch, or what its body means.

// The amax of each operand, the cast of the activation, that of the weight in the
// other order; the activation's exponential is a pass with its amax.

// GPU-LABEL: func.func @linear
// GPU:         fp8.fusion(
// GPU:           math.exp
// GPU:           fp8.amax
// GPU-COUNT-3: fp8.fusion(
// GPU-NOT:     fp8.fusion(
// GPU:         fp8.matmul

// BUFFERS-LABEL:   func.func @linear
// BUFFERS-COUNT-4: fp8_gpu.launch @fp8_kernels::@fp8_fusion_sm90a_
// BUFFERS:         fp8_gpu.launch @fp8_kernels::@fp8_matmul_sm90a_
// BUFFERS-NOT:     fp8_gpu.launch @

// CPU-LABEL: func.func @linear
// CPU:         fp8.amax
// CPU:         fp8.matmul
func.func @linear(%x: tensor<128x256xbf16>, %w: tensor<256x512xbf16>) -> tensor<128x512xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<128x512xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<128x512xf32>) -> tensor<128x512xf32>
  %e = math.exp %x : tensor<128x256xbf16>
  %y = linalg.matmul ins(%e, %w : tensor<128x256xbf16>, tensor<256x512xbf16>) outs(%zeros : tensor<128x512xf32>) -> tensor<128x512xf32>
  return %y : tensor<128x512xf32>
}

// What no kernel computes, for its bits in this case, is taken apart, and its
// parts are loops.

// GPU-LABEL: func.func @mask
// GPU:         fp8.fusion(

// BUFFERS-LABEL: func.func @mask
// BUFFERS-NOT:     fp8_gpu.launch @
// BUFFERS:         linalg.generic
// BUFFERS:           arith.cmpf

// CPU-LABEL: func.func @mask
func.func @mask(%x: tensor<128x256xf32>) -> tensor<128x256xi1> {
  %zeros = arith.constant dense<0.0> : tensor<128x256xf32>
  %0 = arith.cmpf ogt, %x, %zeros : tensor<128x256xf32>
  return %0 : tensor<128x256xi1>
}
