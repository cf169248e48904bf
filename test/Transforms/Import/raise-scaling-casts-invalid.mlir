// RUN: fp8-opt %s --fp8-raise-scaling-casts --verify-diagnostics

func.func @rounding(%x: f32, %s: f8E8M0FNU) -> f8E4M3FN {
  // expected-error @+1 {{expected types of at most 32 bits and rounding to nearest even, but got another}}
  %0 = arith.scaling_truncf %x, %s to_nearest_away : f32, f8E8M0FNU to f8E4M3FN
  return %0 : f8E4M3FN
}
