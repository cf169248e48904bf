// RUN: fp8-opt %s --fp8-pipeline="recipe=rowwise target=sm_90a to=buffers fusion-report=-" -o /dev/null | FileCheck %s

// A grouped product is a product, of which each token is of one group.

// CHECK-LABEL: @experts
// CHECK:       3 kernels
// CHECK:       matmul{{ +}}1.33{{ +}}1.05{{ +}}0.27 {{.*}}experts.grouped_matmul_0
// CHECK:       read again only to be quantized: none
func.func @experts(%x: tensor<1024x256xbf16>, %w: tensor<8x512x256xbf16> {fp8.weight},
                   %offsets: tensor<9xi32>) -> tensor<1024x512xbf16> {
  %y = fp8.grouped_matmul %x, %w offsets(%offsets : tensor<9xi32>) accumulate = fast
      : tensor<1024x256xbf16>, tensor<8x512x256xbf16> -> tensor<1024x512xbf16>
  return %y : tensor<1024x512xbf16>
}

// Groups that are counted each have as much work as there is room for.

// CHECK-LABEL: @counted
// CHECK:       matmul{{ .*}} 2.15 {{.*}}counted.grouped_matmul_0
func.func @counted(%dy: tensor<8x512x512xbf16> {fp8.grad}, %x: tensor<8x512x512xbf16>, %counts: tensor<8xi32>) -> tensor<8x512x512xf32> {
  %dw = fp8.grouped_matmul %dy, %x counts_k(%counts : tensor<8xi32>) transpose_a transpose_b accumulate = fast
      : tensor<8x512x512xbf16>, tensor<8x512x512xbf16> -> tensor<8x512x512xf32>
  return %dw : tensor<8x512x512xf32>
}
