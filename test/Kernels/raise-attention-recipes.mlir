// RUN: fp8-opt %s --fp8-raise-attention="chip=sm_90a only-with-recipe" | FileCheck %s
// RUN: fp8-opt %s --fp8-pipeline="target=sm_90a recipe=current to=fusion" | FileCheck %s --check-prefix=PIPELINE
// RUN: sed 's/^module {/module attributes {fp8.attention_recipe = #fp8.delayed} {/' %s | fp8-opt --fp8-pipeline="target=sm_90a to=recipe" | FileCheck %s --check-prefix=MODULE
// RUN: fp8-opt %s --fp8-pipeline="target=sm_90a to=fusion raise-attention=false" | FileCheck %s --check-prefix=OFF

// An attribute has attention raised before recipes, as an option does, so that the kernel multiplies codes. What has none
// is raised after them.

// CHECK-LABEL: @around
// CHECK: fp8.attention
// CHECK-LABEL: @on_product
// CHECK: fp8.attention {{.*}}fp8.attention_recipe = #fp8.current
// CHECK-LABEL: @without
// CHECK-NOT: fp8.attention
// PIPELINE-LABEL: @around
// PIPELINE: fp8.attention {{.*}}f8E4M3FN
// PIPELINE-LABEL: @on_product
// PIPELINE: fp8.attention {{.*}}f8E4M3FN
// PIPELINE-LABEL: @without
// PIPELINE: fp8.attention {{.*}} : tensor<1x4x32x64xbf16>, tensor<1x4x48x64xbf16>, tensor<1x4x48x64xbf16>
// MODULE-LABEL: @around
// MODULE: fp8.attention {{.*}}fp8.recipe = #fp8.current
// MODULE-LABEL: @on_product
// MODULE: fp8.attention {{.*}}fp8.recipe = #fp8.current
// MODULE-LABEL: @without
// MODULE: fp8.attention {{.*}}fp8.recipe = #fp8.delayed
// OFF-NOT: = fp8.attention
module {
func.func @around(%q: tensor<4x32x64xbf16>, %k: tensor<4x48x64xbf16>, %v: tensor<4x48x64xbf16>) -> tensor<4x32x64xbf16> attributes {fp8.attention_recipe = #fp8.current} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x32x48xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<4x32x48xf32>) -> tensor<4x32x48xf32>
  %s = linalg.batch_matmul indexing_maps = [affine_map<(b, m, n, k) -> (b, m, k)>, affine_map<(b, m, n, k) -> (b, n, k)>, affine_map<(b, m, n, k) -> (b, m, n)>]
      ins(%q, %k : tensor<4x32x64xbf16>, tensor<4x48x64xbf16>) outs(%init : tensor<4x32x48xf32>) -> tensor<4x32x48xf32>
  %c = arith.constant dense<0.125> : tensor<4x32x48xf32>
  %scaled = arith.mulf %s, %c : tensor<4x32x48xf32>
  %p = linalg.softmax dimension(2) ins(%scaled : tensor<4x32x48xf32>) outs(%e : tensor<4x32x48xf32>) -> tensor<4x32x48xf32>
  %rounded = arith.truncf %p : tensor<4x32x48xf32> to tensor<4x32x48xbf16>
  %oe = tensor.empty() : tensor<4x32x64xf32>
  %oinit = linalg.fill ins(%zero : f32) outs(%oe : tensor<4x32x64xf32>) -> tensor<4x32x64xf32>
  %o = linalg.batch_matmul ins(%rounded, %v : tensor<4x32x48xbf16>, tensor<4x48x64xbf16>) outs(%oinit : tensor<4x32x64xf32>) -> tensor<4x32x64xf32>
  %r = arith.truncf %o : tensor<4x32x64xf32> to tensor<4x32x64xbf16>
  return %r : tensor<4x32x64xbf16>
}
func.func @on_product(%q: tensor<4x32x64xbf16>, %k: tensor<4x48x64xbf16>, %v: tensor<4x48x64xbf16>) -> tensor<4x32x64xbf16> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x32x48xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<4x32x48xf32>) -> tensor<4x32x48xf32>
  %s = linalg.batch_matmul indexing_maps = [affine_map<(b, m, n, k) -> (b, m, k)>, affine_map<(b, m, n, k) -> (b, n, k)>, affine_map<(b, m, n, k) -> (b, m, n)>]
      ins(%q, %k : tensor<4x32x64xbf16>, tensor<4x48x64xbf16>) outs(%init : tensor<4x32x48xf32>) -> tensor<4x32x48xf32>
  %c = arith.constant dense<0.125> : tensor<4x32x48xf32>
  %scaled = arith.mulf %s, %c : tensor<4x32x48xf32>
  %p = linalg.softmax dimension(2) ins(%scaled : tensor<4x32x48xf32>) outs(%e : tensor<4x32x48xf32>) -> tensor<4x32x48xf32>
  %rounded = arith.truncf %p : tensor<4x32x48xf32> to tensor<4x32x48xbf16>
  %oe = tensor.empty() : tensor<4x32x64xf32>
  %oinit = linalg.fill ins(%zero : f32) outs(%oe : tensor<4x32x64xf32>) -> tensor<4x32x64xf32>
  %o = linalg.batch_matmul {fp8.attention_recipe = #fp8.current} ins(%rounded, %v : tensor<4x32x48xbf16>, tensor<4x48x64xbf16>) outs(%oinit : tensor<4x32x64xf32>) -> tensor<4x32x64xf32>
  %r = arith.truncf %o : tensor<4x32x64xf32> to tensor<4x32x64xbf16>
  return %r : tensor<4x32x64xbf16>
}
func.func @without(%q: tensor<4x32x64xbf16>, %k: tensor<4x48x64xbf16>, %v: tensor<4x48x64xbf16>) -> tensor<4x32x64xbf16> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x32x48xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<4x32x48xf32>) -> tensor<4x32x48xf32>
  %s = linalg.batch_matmul indexing_maps = [affine_map<(b, m, n, k) -> (b, m, k)>, affine_map<(b, m, n, k) -> (b, n, k)>, affine_map<(b, m, n, k) -> (b, m, n)>]
      ins(%q, %k : tensor<4x32x64xbf16>, tensor<4x48x64xbf16>) outs(%init : tensor<4x32x48xf32>) -> tensor<4x32x48xf32>
  %c = arith.constant dense<0.125> : tensor<4x32x48xf32>
  %scaled = arith.mulf %s, %c : tensor<4x32x48xf32>
  %p = linalg.softmax dimension(2) ins(%scaled : tensor<4x32x48xf32>) outs(%e : tensor<4x32x48xf32>) -> tensor<4x32x48xf32>
  %rounded = arith.truncf %p : tensor<4x32x48xf32> to tensor<4x32x48xbf16>
  %oe = tensor.empty() : tensor<4x32x64xf32>
  %oinit = linalg.fill ins(%zero : f32) outs(%oe : tensor<4x32x64xf32>) -> tensor<4x32x64xf32>
  %o = linalg.batch_matmul ins(%rounded, %v : tensor<4x32x48xbf16>, tensor<4x48x64xbf16>) outs(%oinit : tensor<4x32x64xf32>) -> tensor<4x32x64xf32>
  %r = arith.truncf %o : tensor<4x32x64xf32> to tensor<4x32x64xbf16>
  return %r : tensor<4x32x64xbf16>
}
}
