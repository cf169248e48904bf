// RUN: fp8-opt --fp8-pipeline="recipe=current target=sm_90a to=fusion" %s | FileCheck %s --check-prefix=COPY
// RUN: fp8-opt --fp8-pipeline="recipe=current target=sm_90a to=fusion transposed-codes=kernel" %s | FileCheck %s
// RUN: not fp8-opt --fp8-pipeline="recipe=current target=sm_90a to=fusion transposed-codes=both" %s 2>&1 | FileCheck %s --check-prefix=WAY

// WAY: error: expected transposed-codes to be copy, kernel or cost, but got 'both'

// A weight whose K is not innermost, as a gradient reads it: its codes have one
// order, as a fusion writes them, and a kernel reads the other.

// COPY: fp8.matmul %{{[^ ]*}}, %{{[^ ]*}} {fp8.name
// CHECK: fp8.matmul %{{[^ ]*}}, %{{[^ ]*}} transpose_b {fp8.name
#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#d = affine_map<(m, n, k) -> (m, n)>
func.func @main(%x: tensor<256x512xbf16>, %w: tensor<512x384xbf16>) -> tensor<256x384xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<256x384xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<256x384xf32>) -> tensor<256x384xf32>
  %y = linalg.matmul indexing_maps = [#a, #b, #d] {fp8.name = "dgrad"} ins(%x, %w : tensor<256x512xbf16>, tensor<512x384xbf16>)
    outs(%z : tensor<256x384xf32>) -> tensor<256x384xf32>
  return %y : tensor<256x384xf32>
}
