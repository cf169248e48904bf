// RUN: fp8-opt %s --fp8-pipeline="recipe=delayed attention-recipe=delayed target=sm_90a to=fusion" | FileCheck %s
// RUN: fp8-opt %s --fp8-pipeline="recipe=delayed attention-recipe=delayed target=sm_90a stats to=fusion" | FileCheck %s --check-prefix=STATS
// RUN: fp8-opt %s --fp8-pipeline="recipe=delayed attention-recipe=delayed to=fusion" | FileCheck %s --check-prefix=CPU
// RUN: fp8-opt %s --fp8-pipeline="recipe=delayed attention-recipe=delayed target=sm_90a to=buffers" | FileCheck %s --check-prefix=KERNEL

// The projection behind an attention gives it the scale of its codes, in either
// order of heads and positions, and has the amax that its kernel measures.

// CHECK-LABEL: @positions
// CHECK: %[[CODES:.*]], %[[AMAX:.*]] = fp8.quantized_attention scale(%{{.*}} : tensor<1x1xf32>)
// CHECK: %[[ROWS:.*]] = tensor.collapse_shape %[[CODES]]
// CHECK: fp8.assemble %[[ROWS]]
// CHECK: fp8.record_amax %[[AMAX]]
// STATS-LABEL: @positions
// STATS-NOT: fp8.quantized_attention
// CPU-LABEL: @positions
// CPU-NOT: fp8.quantized_attention
// KERNEL-LABEL: func.func @positions
// KERNEL: fp8_gpu.launch @fp8_kernels::@fp8_attention_sm90a_f8_d64_causal_promote_to_f8
func.func @positions(%q: tensor<1x256x4x64xbf16>, %k: tensor<1x256x4x64xbf16>, %v: tensor<1x256x4x64xbf16>,
                     %w: tensor<256x256xbf16> {fp8.weight}) -> tensor<256x256xf32> {
  %o = fp8.attention %q, %k, %v scale = 0.125 window = [*, 0]
      : tensor<1x256x4x64xbf16>, tensor<1x256x4x64xbf16>, tensor<1x256x4x64xbf16> -> tensor<1x256x4x64xbf16>
  %x = tensor.collapse_shape %o [[0, 1], [2, 3]] : tensor<1x256x4x64xbf16> into tensor<256x256xbf16>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<256x256xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<256x256xf32>) -> tensor<256x256xf32>
  %y = linalg.matmul ins(%x, %w : tensor<256x256xbf16>, tensor<256x256xbf16>) outs(%f : tensor<256x256xf32>) -> tensor<256x256xf32>
  return %y : tensor<256x256xf32>
}

// CHECK-LABEL: @heads
// CHECK: fp8.quantized_attention scale(%{{.*}} : tensor<1x1x1x1xf32>)
// CHECK: fp8.attention {{.*}} layout = bhsd
func.func @heads(%q: tensor<1x4x256x64xbf16>, %k: tensor<1x4x256x64xbf16>, %v: tensor<1x4x256x64xbf16>,
                 %w: tensor<256x256xbf16> {fp8.weight}) -> tensor<256x256xf32> {
  %o = fp8.attention %q, %k, %v scale = 0.125 layout = bhsd
      : tensor<1x4x256x64xbf16>, tensor<1x4x256x64xbf16>, tensor<1x4x256x64xbf16> -> tensor<1x4x256x64xbf16>
  %te = tensor.empty() : tensor<1x256x4x64xbf16>
  %t = linalg.transpose ins(%o : tensor<1x4x256x64xbf16>) outs(%te : tensor<1x256x4x64xbf16>) permutation = [0, 2, 1, 3]
  %x = tensor.collapse_shape %t [[0, 1], [2, 3]] : tensor<1x256x4x64xbf16> into tensor<256x256xbf16>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<256x256xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<256x256xf32>) -> tensor<256x256xf32>
  %y = linalg.matmul ins(%x, %w : tensor<256x256xbf16>, tensor<256x256xbf16>) outs(%f : tensor<256x256xf32>) -> tensor<256x256xf32>
  return %y : tensor<256x256xf32>
}
