// RUN: fp8-opt %s --allow-unregistered-dialect --split-input-file --verify-diagnostics

func.func @stream_c1_type(%x: tensor<4x8xf32>) {
  // expected-error @below {{'fp8.fusion' op expected the body to take ('tensor<4x8xf32>'), but got ('tensor<4x4xf32>')}}
  %0 = fp8.fusion(%x) {
  ^bb0(%a: tensor<4x4xf32>):
    %1 = fp8.amax %a block = [*, *] : tensor<4x4xf32>
    fp8.yield %1 : tensor<1x1xf32>
  } : (tensor<4x8xf32>) -> tensor<1x1xf32>
  return
}

// -----

func.func @stream_c1_count(%x: tensor<4x8xf32>, %s: f32) {
  // expected-error @below {{'fp8.fusion' op expected the body to take ('tensor<4x8xf32>', 'f32'), but got ('tensor<4x8xf32>')}}
  %0 = fp8.fusion(%x, %s) {
  ^bb0(%a: tensor<4x8xf32>):
    %1 = fp8.amax %a block = [*, *] : tensor<4x8xf32>
    fp8.yield %1 : tensor<1x1xf32>
  } : (tensor<4x8xf32>, f32) -> tensor<1x1xf32>
  return
}

// -----

func.func @stream_c1_result(%x: tensor<4x8xf32>) {
  // expected-error @below {{'fp8.fusion' op expected the body to yield ('tensor<4x1xf32>')}}
  %0 = fp8.fusion(%x) {
  ^bb0(%a: tensor<4x8xf32>):
    %1 = fp8.amax %a block = [*, *] : tensor<4x8xf32>
    fp8.yield %1 : tensor<1x1xf32>
  } : (tensor<4x8xf32>) -> tensor<4x1xf32>
  return
}

// -----

func.func @stream_c1_results(%x: tensor<4x8xf32>) {
  // expected-error @below {{'fp8.fusion' op expected the body to yield ('tensor<1x1xf32>', 'tensor<1x1xf32>')}}
  %0:2 = fp8.fusion(%x) {
  ^bb0(%a: tensor<4x8xf32>):
    %1 = fp8.amax %a block = [*, *] : tensor<4x8xf32>
    fp8.yield %1 : tensor<1x1xf32>
  } : (tensor<4x8xf32>) -> (tensor<1x1xf32>, tensor<1x1xf32>)
  return
}

// -----

func.func @stream_c1_terminator(%x: tensor<4x8xf32>) {
  // expected-error @below {{'fp8.fusion' op expected the body to yield ('tensor<4x8xf32>')}}
  %0 = fp8.fusion(%x) {
  ^bb0(%a: tensor<4x8xf32>):
    llvm.unreachable
  } : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @stream_c2_unknown(%x: tensor<4x8xf32>) {
  // expected-error @below {{'fp8.fusion' op expected operations without side effects, but got 'test.unknown'}}
  %0 = fp8.fusion(%x) {
  ^bb0(%a: tensor<4x8xf32>):
    %1 = "test.unknown"(%a) : (tensor<4x8xf32>) -> tensor<4x8xf32>
    fp8.yield %1 : tensor<4x8xf32>
  } : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @stream_c2_state(%x: tensor<4x8xf32>, %state: !fp8.state, %slot: index) {
  // expected-error @below {{'fp8.fusion' op expected operations without side effects, but got 'fp8.record_amax'}}
  %0 = fp8.fusion(%x, %state, %slot) {
  ^bb0(%a: tensor<4x8xf32>, %b: !fp8.state, %c: index):
    %1 = fp8.amax %a block = [*, *] : tensor<4x8xf32>
    fp8.record_amax %1, %b[%c] : tensor<1x1xf32>
    fp8.yield %1 : tensor<1x1xf32>
  } : (tensor<4x8xf32>, !fp8.state, index) -> tensor<1x1xf32>
  return
}

// -----

// What has an effect further inside has one.

func.func @stream_c2_nested(%x: tensor<4x8xf32>, %go: i1) {
  // expected-error @below {{'fp8.fusion' op expected operations without side effects, but got 'scf.if'}}
  %0 = fp8.fusion(%x, %go) {
  ^bb0(%a: tensor<4x8xf32>, %b: i1):
    %1 = scf.if %b -> tensor<4x8xf32> {
      %2 = "test.unknown"(%a) : (tensor<4x8xf32>) -> tensor<4x8xf32>
      scf.yield %2 : tensor<4x8xf32>
    } else {
      scf.yield %a : tensor<4x8xf32>
    }
    fp8.yield %1 : tensor<4x8xf32>
  } : (tensor<4x8xf32>, i1) -> tensor<4x8xf32>
  return
}

// -----

// Codes and factors are apart.

func.func @stream_scaled_result(%x: tensor<4x8xf32>, %s: tensor<1x1xf32>) {
  // expected-error @below {{'fp8.fusion' op result #0 must be variadic of ranked tensor of any type values, but got '!fp8.scaled<4x8xf8E4M3FN, block = [*, *], scale = f32>'}}
  %0 = fp8.fusion(%x, %s) {
  ^bb0(%a: tensor<4x8xf32>, %b: tensor<1x1xf32>):
    %1 = fp8.quantize %a scale(%b, %b : tensor<1x1xf32>, tensor<1x1xf32>) : tensor<4x8xf32> -> !fp8.scaled<4x8xf8E4M3FN, block = [*, *], scale = f32>
    fp8.yield %1 : !fp8.scaled<4x8xf8E4M3FN, block = [*, *], scale = f32>
  } : (tensor<4x8xf32>, tensor<1x1xf32>) -> !fp8.scaled<4x8xf8E4M3FN, block = [*, *], scale = f32>
  return
}

// -----

// A body sees its arguments only.

func.func @stream_isolated(%x: tensor<4x8xf32>, %y: tensor<4x8xf32>) {
  // expected-note @below {{required by region isolation constraints}}
  %0 = fp8.fusion(%x) {
  ^bb0(%a: tensor<4x8xf32>):
    // expected-error @below {{'fp8.amax' op using value defined outside the region}}
    %1 = fp8.amax %y block = [*, *] : tensor<4x8xf32>
    fp8.yield %1 : tensor<1x1xf32>
  } : (tensor<4x8xf32>) -> tensor<1x1xf32>
  return
}

// -----

func.func @stream_yield_elsewhere(%x: tensor<4x8xf32>) {
  // expected-error @below {{'fp8.yield' op expects parent op to be one of 'fp8.grouped_matmul, fp8.sibling_matmuls, fp8.matmul, fp8.fusion'}}
  fp8.yield %x : tensor<4x8xf32>
}
