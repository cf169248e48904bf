// RUN: fp8-opt %s --split-input-file --fp8-infer-scales --verify-diagnostics

func.func @seedless(%x: tensor<4x64xf32>) -> !fp8.scaled<4x64xf4E2M1FN, block = [1, 16], scale = f8E4M3FN, tensor_scale = f32> {
  // expected-error @below {{'fp8.quantize' op expected a recipe without state, but got #fp8.nvfp4<stochastic_rounding = true>: its seeds come from a state, run fp8-allocate-state first}}
  %0 = fp8.quantize %x recipe(#fp8.nvfp4<stochastic_rounding = true>) : tensor<4x64xf32> -> !fp8.scaled<4x64xf4E2M1FN, block = [1, 16], scale = f8E4M3FN, tensor_scale = f32>
  return %0 : !fp8.scaled<4x64xf4E2M1FN, block = [1, 16], scale = f8E4M3FN, tensor_scale = f32>
}

// -----

func.func @stateful(%x: tensor<4x64xf32>) -> !fp8.scaled<4x64xf8E4M3FN, block = [*, *], scale = f32> {
  // expected-error @below {{'fp8.quantize' op expected a recipe without state, but got #fp8.delayed: its scales come from a state, run fp8-allocate-state first}}
  %0 = fp8.quantize %x recipe(#fp8.delayed) : tensor<4x64xf32> -> !fp8.scaled<4x64xf8E4M3FN, block = [*, *], scale = f32>
  return %0 : !fp8.scaled<4x64xf8E4M3FN, block = [*, *], scale = f32>
}
