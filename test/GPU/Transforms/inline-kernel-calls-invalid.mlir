// RUN: fp8-opt %s --fp8-inline-kernel-calls --split-input-file --verify-diagnostics

func.func private @external(%x: f32) -> f32
func.func @no_body(%y: f32) {
  %c1 = arith.constant 1 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
      threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    // expected-error @+1 {{expected a function of one block in a kernel, but got 'external'}}
    %0 = func.call @external(%y) : (f32) -> f32
    gpu.terminator
  }
  return
}

// -----

func.func private @again(%x: f32) -> f32 {
  // expected-error @+1 {{expected a function in a kernel not to call itself, but 'again' does}}
  %0 = func.call @again(%x) : (f32) -> f32
  return %0 : f32
}
func.func @recursion(%y: f32) {
  %c1 = arith.constant 1 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
      threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %0 = func.call @again(%y) : (f32) -> f32
    gpu.terminator
  }
  return
}
