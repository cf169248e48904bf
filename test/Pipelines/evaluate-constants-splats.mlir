// RUN: bash -c 'ulimit -v 6000000; exec "$@"' - fp8-opt %s --fp8-evaluate-constants --split-input-file | FileCheck %s
// UNSUPPORTED: sanitizers

// Codes and factors of a splat are splats, which no tensor of its size is
// written for.

!w = !fp8.scaled<65536x65536xf8E4M3FN, block = [*, *], scale = f32>

// CHECK-LABEL: func.func @tensor
// CHECK-DAG:   %[[CODES:.*]] = arith.constant dense<4.480000e+02> : tensor<65536x65536xf8E4M3FN>
// CHECK-DAG:   %[[FACTOR:.*]] = arith.constant dense<0.00111607148> : tensor<1x1xf32>
// CHECK:       fp8.assemble %[[CODES]], %[[FACTOR]]
// CHECK-NOT:   fp8.quantize
func.func @tensor() -> !w {
  %w = arith.constant dense<0.5> : tensor<65536x65536xf32>
  %amax = fp8.amax %w block = [*, *] : tensor<65536x65536xf32>
  %scale, %scale_inv = fp8.compute_scale %amax format = f8E4M3FN scale_type = f32 : tensor<1x1xf32>
  %q = fp8.quantize %w scale(%scale, %scale_inv : tensor<1x1xf32>, tensor<1x1xf32>) : tensor<65536x65536xf32> -> !w
  return %q : !w
}

// -----

!w = !fp8.scaled<4096x130xf8E4M3FN, block = [128, 32], scale = f32>

// Blocks that are cut off among them.

// CHECK-LABEL: func.func @blocks
// CHECK-DAG:   arith.constant dense<4.480000e+02> : tensor<4096x130xf8E4M3FN>
// CHECK-DAG:   arith.constant dense<0.00223214296> : tensor<32x5xf32>
func.func @blocks() -> !w {
  %w = arith.constant dense<1.0> : tensor<4096x130xbf16>
  %amax = fp8.amax %w block = [128, 32] : tensor<4096x130xbf16>
  %scale, %scale_inv = fp8.compute_scale %amax format = f8E4M3FN scale_type = f32 : tensor<32x5xf32>
  %q = fp8.quantize %w scale(%scale, %scale_inv : tensor<32x5xf32>, tensor<32x5xf32>) : tensor<4096x130xbf16> -> !w
  return %q : !w
}

// -----

// What is not equal everywhere, as what is rotated, is left to the program if
// it would fill memory.

!w = !fp8.scaled<65536x65536xf8E4M3FN, block = [*, *], scale = f32>

// CHECK-LABEL: func.func @rotated
// CHECK:       fp8.hadamard
// CHECK:       fp8.quantize
func.func @rotated() -> !w {
  %w = arith.constant dense<0.5> : tensor<65536x65536xf32>
  %r = fp8.hadamard %w signs = 5 : tensor<65536x65536xf32>
  %one = arith.constant dense<1.0> : tensor<1x1xf32>
  %q = fp8.quantize %r scale(%one, %one : tensor<1x1xf32>, tensor<1x1xf32>) : tensor<65536x65536xf32> -> !w
  return %q : !w
}
