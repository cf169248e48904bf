// RUN: fp8-opt %s --split-input-file --verify-diagnostics

!x = tensor<32x64xbf16>
func.func @sibling_matmuls_c1_other(%x: !x, %w: !x) {
  // expected-error @below {{'fp8.sibling_matmuls' op expected the body to have matmuls only, but got 'arith.negf'}}
  %0:2 = fp8.sibling_matmuls {
    %g = fp8.matmul %x, %w accumulate = fast : !x, !x -> tensor<32x32xf32>
    %n = arith.negf %g : tensor<32x32xf32>
    fp8.yield %g, %n : tensor<32x32xf32>, tensor<32x32xf32>
  } : tensor<32x32xf32>, tensor<32x32xf32>
  return
}

// -----

func.func @sibling_matmuls_c1_none() {
  // expected-error @below {{'fp8.sibling_matmuls' op expected at least one matmul, but got none}}
  "fp8.sibling_matmuls"() ({
    fp8.yield
  }) : () -> ()
  return
}

// -----

!x = tensor<32x32xbf16>
func.func @sibling_matmuls_c1_chain(%x: !x, %w: !x) {
  // expected-error @below {{'fp8.sibling_matmuls' op expected matmuls that do not use each other's results, or a pair whose second reads the first one's result, and nothing else does}}
  %0:2 = fp8.sibling_matmuls {
    %g = fp8.matmul %x, %w accumulate = fast : !x, !x -> !x
    %u = fp8.matmul %x, %g accumulate = fast : !x, !x -> !x
    fp8.yield %g, %u : !x, !x
  } : !x, !x
  return
}

// -----

!x = tensor<32x32xbf16>
func.func @sibling_matmuls_c1_epilogue(%x: !x, %w: !x) {
  // expected-error @below {{'fp8.sibling_matmuls' op expected matmuls that do not use each other's results, or a pair whose second reads the first one's result, and nothing else does}}
  %0:2 = fp8.sibling_matmuls {
    %g = fp8.matmul %x, %w accumulate = fast : !x, !x -> !x
    %u = fp8.matmul %x, %w accumulate = fast epilogue(%g : !x) {
    ^bb0(%acc: f32, %e: bf16):
      fp8.yield %e : bf16
    } : !x, !x -> !x
    fp8.yield %g, %u : !x, !x
  } : !x, !x
  return
}

// -----

!x = tensor<32x64xbf16>
func.func @sibling_matmuls_c2_missing(%x: !x, %w: !x) {
  // expected-error @below {{'fp8.sibling_matmuls' op expected the body to yield the results of its matmuls, all that none of them reads}}
  %0:2 = fp8.sibling_matmuls {
    %g = fp8.matmul %x, %w accumulate = fast : !x, !x -> tensor<32x32xf32>
    %u = fp8.matmul %x, %w accumulate = fast : !x, !x -> tensor<32x32xf32>
    fp8.yield %u, %u : tensor<32x32xf32>, tensor<32x32xf32>
  } : tensor<32x32xf32>, tensor<32x32xf32>
  return
}

// -----

!x = tensor<32x64xbf16>
func.func @sibling_matmuls_c2_other(%x: !x, %w: !x, %y: tensor<32x32xf32>) {
  // expected-error @below {{'fp8.sibling_matmuls' op expected the body to yield the results of its matmuls, all that none of them reads}}
  %0:2 = fp8.sibling_matmuls {
    %g = fp8.matmul %x, %w accumulate = fast : !x, !x -> tensor<32x32xf32>
    fp8.yield %g, %y : tensor<32x32xf32>, tensor<32x32xf32>
  } : tensor<32x32xf32>, tensor<32x32xf32>
  return
}

// -----

!x = tensor<32x64xbf16>
func.func @sibling_matmuls_c2_types(%x: !x, %w: !x) {
  // expected-error @below {{'fp8.sibling_matmuls' op expected results of 'tensor<32x32xf32>', 'tensor<32x32xf32>', but got 'tensor<32x32xf32>', 'tensor<32x32xf16>'}}
  %0:2 = fp8.sibling_matmuls {
    %g = fp8.matmul %x, %w accumulate = fast : !x, !x -> tensor<32x32xf32>
    %u = fp8.matmul %x, %w accumulate = fast : !x, !x -> tensor<32x32xf32>
    fp8.yield %g, %u : tensor<32x32xf32>, tensor<32x32xf32>
  } : tensor<32x32xf32>, tensor<32x32xf16>
  return
}

// -----

!x = tensor<32x64xbf16>
func.func @sibling_matmuls_c3(%x: !x, %y: !x, %w: !x, %v: !x) {
  // expected-error @below {{'fp8.sibling_matmuls' op expected matmuls of the same A or of the same B}}
  %0:2 = fp8.sibling_matmuls {
    %g = fp8.matmul %x, %w accumulate = fast : !x, !x -> tensor<32x32xf32>
    %u = fp8.matmul %y, %v accumulate = fast : !x, !x -> tensor<32x32xf32>
    fp8.yield %g, %u : tensor<32x32xf32>, tensor<32x32xf32>
  } : tensor<32x32xf32>, tensor<32x32xf32>
  return
}

// -----

!x = tensor<32x32xbf16>
func.func @sibling_matmuls_c1_pair_of_other_a(%x: !x, %y: !x, %w: !x) {
  // expected-error @below {{'fp8.sibling_matmuls' op expected matmuls that do not use each other's results}}
  %0 = fp8.sibling_matmuls {
    %g = fp8.matmul %x, %w accumulate = fast : !x, !x -> !x
    %u = fp8.matmul %y, %w accumulate = fast epilogue(%g : !x) {
    ^bb0(%acc: f32, %e: bf16):
      fp8.yield %e : bf16
    } : !x, !x -> !x
    fp8.yield %u : !x
  } : !x
  return
}
