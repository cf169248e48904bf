// RUN: fp8-opt %s --pass-pipeline="builtin.module(fp8-verify-stage{stage=recipe},fp8-verify-stage{stage=scaling},fp8-verify-stage{stage=fusion},fp8-verify-stage{stage=kernels})" --split-input-file --verify-diagnostics
// RUN: not fp8-opt %s --split-input-file --fp8-verify-stage=stage=fancy 2>&1 | FileCheck %s --check-prefix=STAGE
// RUN: not fp8-opt %s --split-input-file --fp8-verify-stage 2>&1 | FileCheck %s --check-prefix=EMPTY

// STAGE: error: expected stage to be one of import, recipe, scaling, fusion, buffers, kernels and host, but got 'fancy'
// EMPTY: error: expected stage to be one of {{.*}}, but got ''

func.func @recipe_of_high_precision(%a: tensor<4x16xf32>, %b: tensor<4x16xf32>, %c: tensor<4x4xf32>) -> tensor<4x4xf32> {
  // expected-error @below {{expected operands from fp8.dequantize after phase 'recipe'}}
  %0 = linalg.contract indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>]
      {fp8.recipe = #fp8.current, fp8.accumulate = #fp8<accumulate fast>}
      ins(%a, %b : tensor<4x16xf32>, tensor<4x16xf32>) outs(%c : tensor<4x4xf32>) -> tensor<4x4xf32>
  return %0 : tensor<4x4xf32>
}

// -----

func.func @two_quantizes(%x: tensor<4x16xf32>, %s: tensor<1x1xf32>) -> (!fp8.scaled<4x16xf8E4M3FN, block = [*, *], scale = f32>, !fp8.scaled<4x16xf8E4M3FN, block = [*, *], scale = f32>) {
  // expected-error @below {{expected one quantize for each value, scale and type after phase 'fusion'}}
  %0 = fp8.quantize %x scale(%s, %s : tensor<1x1xf32>, tensor<1x1xf32>) : tensor<4x16xf32> -> !fp8.scaled<4x16xf8E4M3FN, block = [*, *], scale = f32>
  %1 = fp8.quantize %x scale(%s, %s : tensor<1x1xf32>, tensor<1x1xf32>) : tensor<4x16xf32> -> !fp8.scaled<4x16xf8E4M3FN, block = [*, *], scale = f32>
  return %0, %1 : !fp8.scaled<4x16xf8E4M3FN, block = [*, *], scale = f32>, !fp8.scaled<4x16xf8E4M3FN, block = [*, *], scale = f32>
}

// -----

func.func @arithmetic(%x: f8E4M3FN) -> f8E4M3FN {
  // expected-error @below {{expected no arithmetic on 'f8E4M3FN' after phase 'kernels'}}
  %0 = arith.mulf %x, %x : f8E4M3FN
  return %0 : f8E4M3FN
}

// -----

func.func @cast(%x: vector<4xf8E5M2>) -> vector<4xf32> {
  // expected-error @below {{expected no arithmetic on 'f8E5M2' after phase 'kernels'}}
  %0 = arith.extf %x : vector<4xf8E5M2> to vector<4xf32>
  return %0 : vector<4xf32>
}
