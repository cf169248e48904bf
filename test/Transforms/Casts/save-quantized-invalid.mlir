// RUN: fp8-opt %s --fp8-save-quantized --split-input-file --verify-diagnostics

// expected-error @below {{expected a tensor of the module to have 'fp8.save' = "x", as argument 0 has 'fp8.saved', but got none}}
func.func @f(%x: tensor<4xf32> {fp8.saved = "x"}) {
  return
}

// -----

func.func @f(%x: tensor<4xf32> {fp8.save = "x"}) {
  return
}
// expected-error @below {{expected one tensor with 'fp8.save' = "x", but got another one}}
func.func @g() -> (tensor<4xf32> {fp8.save = "x"}) {
  %x = arith.constant dense<1.0> : tensor<4xf32>
  return %x : tensor<4xf32>
}

// -----

func.func @f(%x: tensor<4xf32> {fp8.save = "x"}) {
  return
}
// expected-error @below {{expected argument 1 to be what was saved as "x", 'tensor<4xf32>', but got 'tensor<4xbf16>'}}
func.func @g(%y: f32, %x: tensor<4xbf16> {fp8.saved = "x"}) {
  return
}

// -----

// expected-error @below {{expected 'fp8.save' to be a string, but got 3 : i64}}
func.func @f(%x: tensor<4xf32> {fp8.save = 3}) {
  return
}

// -----

func.func @f(%x: tensor<4xf32> {fp8.save = "x"}) {
  return
}
// expected-error @below {{expected one argument with 'fp8.saved' = "x", but got another one}}
func.func @g(%x: tensor<4xf32> {fp8.saved = "x"}, %y: tensor<4xf32> {fp8.saved = "x"}) {
  return
}

// -----

// expected-error @below {{expected another function to have 'fp8.save' = "x", as argument 1 has 'fp8.saved', but got its own}}
func.func @f(%x: tensor<4xf32> {fp8.save = "x"}, %y: tensor<4xf32> {fp8.saved = "x"}) {
  return
}

// -----

// expected-error @below {{expected what has 'fp8.save' = "x" to be a tensor of floats, but got 'index'}}
func.func @f(%x: index {fp8.save = "x"}) {
  return
}
func.func @g(%x: index {fp8.saved = "x"}) {
  return
}
