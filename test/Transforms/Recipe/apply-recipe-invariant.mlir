// RUN: fp8-opt %s --fp8-apply-recipe=recipe=rowwise | FileCheck %s
// RUN: fp8-opt %s --fp8-apply-recipe=recipe=block | FileCheck %s --check-prefix=BLOCK
// RUN: fp8-opt %s --fp8-apply-recipe=recipe=mxfp8 | FileCheck %s --check-prefix=MXFP8
// RUN: fp8-opt %s --fp8-apply-recipe=recipe=static,state=saved | FileCheck %s --check-prefix=STATIC
// RUN: not fp8-opt %s --fp8-apply-recipe=recipe=current 2>&1 | FileCheck %s --check-prefix=CURRENT
// RUN: not fp8-opt %s --fp8-apply-recipe=recipe=delayed 2>&1 | FileCheck %s --check-prefix=DELAYED
// RUN: not fp8-opt %s --fp8-apply-recipe=recipe=nvfp4 2>&1 | FileCheck %s --check-prefix=NVFP4
// RUN: not fp8-opt %s --fp8-apply-recipe=recipe=block,x_dim=2,w_dim=1 2>&1 | FileCheck %s --check-prefix=TILES
// RUN: echo "module {}" | not fp8-opt --fp8-pipeline="recipe=current invariant target=cpu to=recipe" 2>&1 | FileCheck %s --check-prefix=EMPTY

// Scales of an activation's row, or known ones; those of a weight, and of sums over all rows, may be any.
// CHECK-LABEL: func.func @forward(
// CHECK: fp8.quantize %arg0 recipe(#fp8.rowwise{{.*}}block = [1, *]
// BLOCK: fp8.quantize %arg0 recipe(#fp8.block{{.*}}block = [1, 128]
// MXFP8: fp8.quantize %arg0 recipe(#fp8.mxfp8{{.*}}block = [1, 32]
// STATIC: fp8.quantize %arg0 recipe(#fp8.static{{.*}}block = [*, *]
// CURRENT: error: expected 'forward' to have scales that depend on one row in an invariant program, but current has one for all rows: use rowwise, block, mxfp8, or static
// DELAYED: error: expected 'forward' to have scales that depend on one row in an invariant program, but delayed has one for all rows
// NVFP4: error: expected 'forward' to have scales that depend on one row in an invariant program, but nvfp4 has one for all rows
// TILES: error: expected 'forward' to have scales that depend on one row in an invariant program, but block has one for 128 rows
// EMPTY: error: expected scales that depend on one row in an invariant program, but current has one for all rows
func.func @forward(%x: tensor<32x256xbf16>, %w: tensor<256x64xbf16> {fp8.weight}) -> tensor<32x64xf32>
    attributes {fp8.invariant} {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<32x64xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<32x64xf32>) -> tensor<32x64xf32>
  %y = linalg.matmul {fp8.name = "forward", fp8.role = #fp8.role<fprop>} ins(%x, %w : tensor<32x256xbf16>, tensor<256x64xbf16>) outs(%zeros : tensor<32x64xf32>) -> tensor<32x64xf32>
  return %y : tensor<32x64xf32>
}

// A gradient of a weight is a sum over rows, and depends on all of them anyway.
// CHECK-LABEL: func.func @sum(
// CHECK: fp8.quantize {{.*}}block = [*, *]
func.func @sum(%x: tensor<256x32xbf16>, %dy: tensor<256x64xbf16> {fp8.grad}) -> tensor<32x64xf32>
    attributes {fp8.invariant} {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<32x64xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<32x64xf32>) -> tensor<32x64xf32>
  %t = tensor.empty() : tensor<32x256xbf16>
  %xt = linalg.transpose ins(%x : tensor<256x32xbf16>) outs(%t : tensor<32x256xbf16>) permutation = [1, 0]
  %y = linalg.matmul {fp8.name = "sum", fp8.role = #fp8.role<wgrad>, fp8.recipe = #fp8.current} ins(%xt, %dy : tensor<32x256xbf16>, tensor<256x64xbf16>) outs(%zeros : tensor<32x64xf32>) -> tensor<32x64xf32>
  return %y : tensor<32x64xf32>
}
