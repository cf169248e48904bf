// RUN: fp8-opt %s --convert-fp8-to-linalg --split-input-file --verify-diagnostics

func.func @unresolved(%x: tensor<4x8xf32>) -> !fp8.scaled<4x8xf8E4M3FN, block = [*, *], scale = f32> {
  // expected-error @below {{'fp8.quantize' op expected a scale, but got the recipe #fp8.current: run fp8-infer-scales first}}
  %0 = fp8.quantize %x recipe(#fp8.current) : tensor<4x8xf32> -> !fp8.scaled<4x8xf8E4M3FN, block = [*, *], scale = f32>
  return %0 : !fp8.scaled<4x8xf8E4M3FN, block = [*, *], scale = f32>
}

// -----

func.func @unknown_operation(%x: !fp8.scaled<4x8xf8E4M3FN, block = [*, *], scale = f32>) {
  // expected-error @below {{failed to legalize operation 'builtin.unrealized_conversion_cast'}}
  %0 = builtin.unrealized_conversion_cast %x : !fp8.scaled<4x8xf8E4M3FN, block = [*, *], scale = f32> to i32
  return
}

// -----

func.func @unresolved_in_a_fusion(%x: tensor<4x8xf32>) -> tensor<4x8xf8E4M3FN> {
  %0 = fp8.fusion(%x) {
  ^bb0(%a: tensor<4x8xf32>):
    // expected-error @below {{'fp8.quantize' op expected a scale, but got the recipe #fp8.current: run fp8-infer-scales first}}
    %1 = fp8.quantize %a recipe(#fp8.current) : tensor<4x8xf32> -> !fp8.scaled<4x8xf8E4M3FN, block = [*, *], scale = f32>
    %codes, %factors = fp8.disassemble %1 : !fp8.scaled<4x8xf8E4M3FN, block = [*, *], scale = f32>
    fp8.yield %codes : tensor<4x8xf8E4M3FN>
  } : (tensor<4x8xf32>) -> tensor<4x8xf8E4M3FN>
  return %0 : tensor<4x8xf8E4M3FN>
}

// -----

// What nobody has raised in the slot's memory is not there.

func.func @in_place_of_something_else(%state: !fp8.state, %slot: index, %amax: tensor<1x1xf32>) {
  // expected-error @below {{failed to legalize operation 'fp8.record_amax'}}
  fp8.record_amax %amax, %state[%slot] in_place : tensor<1x1xf32>
  return
}
