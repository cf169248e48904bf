// RUN: fp8-opt %s --fp8-form-streams=by-place 2>&1 | FileCheck %s --check-prefix=PASS
// RUN: fp8-opt %s --pass-pipeline="builtin.module(func.func(fp8-form-streams{by-place=false}))" 2>&1 | FileCheck %s --check-prefix=PASS
// RUN: fp8-opt %s --fp8-pipeline="recipe=current accumulate=tensor-core sums-of=sm_100a to=buffers" 2>&1 | FileCheck %s --check-prefix=OPTION
// RUN: fp8-compile %s --accumulate=tensor-core --sums-of=sm_100a -o %t.so 2>&1 | FileCheck %s --check-prefix=OPTION
// RUN: not fp8-opt %s --fp8-form-streams=colour 2>&1 | FileCheck %s --check-prefix=INVALID
// RUN: not fp8-compile %s --sums-of=sm_100a -o %t.so 2>&1 | FileCheck %s --check-prefix=ALONE

// Passes and options have the names that they had before, with a warning.

// PASS: warning: pass 'fp8-form-streams' is called 'fp8-form-fusions' now
// PASS: fp8.fusion
// OPTION: warning: option 'sums-of' is called 'accumulation-of' now
// INVALID: colour
// ALONE: expected accumulate to be tensor-core with accumulation-of
func.func @f(%x: tensor<64x256xbf16>) -> (tensor<64x256xbf16>, tensor<1x1xf32>) {
  %e = tensor.empty() : tensor<64x256xbf16>
  %y = linalg.negf ins(%x : tensor<64x256xbf16>) outs(%e : tensor<64x256xbf16>) -> tensor<64x256xbf16>
  %a = fp8.amax %y block = [*, *] : tensor<64x256xbf16>
  return %y, %a : tensor<64x256xbf16>, tensor<1x1xf32>
}
