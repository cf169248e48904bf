// RUN: fp8-opt %s --fp8-evaluate-constants --split-input-file | FileCheck %s

!w = !fp8.scaled<2x4xf8E4M3FN, block = [*, *], scale = f32>

// CHECK-LABEL: func.func @current
func.func @current() -> !w {
  // CHECK-NEXT: %[[CODES:.*]] = arith.constant dense<{{\[\[}}4.480000e+02, 2.240000e+02, 1.120000e+02, 0.000000e+00], [-2.240000e+02, 2.240000e+02, 2.240000e+02, 2.240000e+02]]> : tensor<2x4xf8E4M3FN>
  // CHECK-NEXT: %[[FACTOR:.*]] = arith.constant dense<1.562500e-02> : tensor<1x1xf32>
  // CHECK-NEXT: %[[Q:.*]] = fp8.assemble %[[CODES]], %[[FACTOR]]
  // CHECK-NEXT: return %[[Q]]
  %w = arith.constant dense<[[7.0, 3.5, 1.75, 0.0], [-3.5, 3.5, 3.5, 3.5]]> : tensor<2x4xbf16>
  %amax = fp8.amax %w block = [*, *] : tensor<2x4xbf16>
  %scale, %scale_inv = fp8.compute_scale %amax format = f8E4M3FN scale_type = f32 : tensor<1x1xf32>
  %q = fp8.quantize %w scale(%scale, %scale_inv : tensor<1x1xf32>, tensor<1x1xf32>) : tensor<2x4xbf16> -> !w
  return %q : !w
}

// -----

// A scale that is given, as by calibration, and a splat, which stays one.

!w = !fp8.scaled<2x4xf8E5M2, block = [*, *], scale = f32>

// CHECK-LABEL: func.func @given_scale
func.func @given_scale() -> !w {
  // CHECK: arith.constant dense<4.000000e+00> : tensor<2x4xf8E5M2>
  // CHECK-NEXT: arith.constant dense<5.000000e-01> : tensor<1x1xf32>
  // CHECK-NOT: fp8.quantize
  %w = arith.constant dense<2.0> : tensor<2x4xf16>
  %scale = arith.constant dense<2.0> : tensor<1x1xf32>
  %scale_inv = arith.constant dense<0.5> : tensor<1x1xf32>
  %q = fp8.quantize %w scale(%scale, %scale_inv : tensor<1x1xf32>, tensor<1x1xf32>) : tensor<2x4xf16> -> !w
  return %q : !w
}

// -----

// Three parts, and 4-bit codes.

!w = !fp8.scaled<1x16xf4E2M1FN, block = [1, 16], scale = f8E4M3FN, tensor_scale = f32>

// CHECK-LABEL: func.func @tensor_scale
func.func @tensor_scale() -> !w {
  // CHECK: %[[CODES:.*]] = arith.constant dense<{{.*}}6.000000e+00, -6.000000e+00, 3.000000e+00
  // CHECK-SAME: tensor<1x16xf4E2M1FN>
  // CHECK-NEXT: %[[FACTOR:.*]] = arith.constant dense<4.480000e+02> : tensor<1x1xf8E4M3FN>
  // CHECK-NEXT: %[[TENSOR:.*]] = arith.constant dense<{{.*}}> : tensor<1x1xf32>
  // CHECK-NEXT: fp8.assemble %[[CODES]], %[[FACTOR]], %[[TENSOR]]
  %w = arith.constant dense<[[6.0, -6.0, 3.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0]]> : tensor<1x16xf32>
  %amax = fp8.amax %w block = [1, 16] : tensor<1x16xf32>
  %tensor_amax = fp8.amax %amax block = [*, *] : tensor<1x1xf32>
  %scale, %scale_inv, %tensor_scale_inv = fp8.compute_scale %amax tensor_amax(%tensor_amax : tensor<1x1xf32>) format = f4E2M1FN scale_type = f8E4M3FN : tensor<1x1xf32>
  %q = fp8.quantize %w scale(%scale, %scale_inv : tensor<1x1xf32>, tensor<1x1xf8E4M3FN>) tensor_scale_inv(%tensor_scale_inv : tensor<1x1xf32>) : tensor<1x16xf32> -> !w
  return %q : !w
}

// -----

// Through data movement and casts on the way, and into a loop.

!w = !fp8.scaled<4x2xf8E4M3FN, block = [1, *], scale = f32>
#id = affine_map<(i, j) -> (i, j)>

// CHECK-LABEL: func.func @movement
func.func @movement(%n: index) -> !w {
  // CHECK-NOT: bf16
  // CHECK: scf.for
  // CHECK-NOT: linalg
  // CHECK: arith.constant dense<{{\[\[}}1.000000e+00, 4.000000e+00], [2.000000e+00, 0.000000e+00], [3.000000e+00, 0.000000e+00], [0.000000e+00, 0.000000e+00]]> : tensor<4x2xf8E4M3FN>
  // CHECK-NOT: fp8.quantize
  %w = arith.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xbf16>
  %one = arith.constant dense<1.0> : tensor<4x1xf32>
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %s = tensor.extract_slice %w[0] [3] [1] : tensor<4xbf16> to tensor<3xbf16>
  %row0 = tensor.expand_shape %s [[0, 1]] output_shape [1, 3] : tensor<3xbf16> into tensor<1x3xbf16>
  %t = tensor.extract_slice %w[3] [1] [1] : tensor<4xbf16> to tensor<1xbf16>
  %row1 = tensor.expand_shape %t [[0, 1]] output_shape [1, 1] : tensor<1xbf16> into tensor<1x1xbf16>
  %wide_empty = tensor.empty() : tensor<1x3xf32>
  %wide = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%row0 : tensor<1x3xbf16>) outs(%wide_empty : tensor<1x3xf32>) {
  ^bb0(%in: bf16, %out: f32):
    %0 = arith.extf %in : bf16 to f32
    linalg.yield %0 : f32
  } -> tensor<1x3xf32>
  %narrow_empty = tensor.empty() : tensor<1x1xf32>
  %narrow = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%row1 : tensor<1x1xbf16>) outs(%narrow_empty : tensor<1x1xf32>) {
  ^bb0(%in: bf16, %out: f32):
    %0 = arith.extf %in : bf16 to f32
    linalg.yield %0 : f32
  } -> tensor<1x1xf32>
  %padded0 = tensor.pad %wide low[0, 0] high[0, 1] {
  ^bb0(%i: index, %j: index):
    tensor.yield %zero : f32
  } : tensor<1x3xf32> to tensor<1x4xf32>
  %padded1 = tensor.pad %narrow low[0, 0] high[0, 3] {
  ^bb0(%i: index, %j: index):
    tensor.yield %zero : f32
  } : tensor<1x1xf32> to tensor<1x4xf32>
  %both = tensor.concat dim(0) %padded0, %padded1 : (tensor<1x4xf32>, tensor<1x4xf32>) -> tensor<2x4xf32>
  %empty = tensor.empty() : tensor<4x2xf32>
  %turned = linalg.transpose ins(%both : tensor<2x4xf32>) outs(%empty : tensor<4x2xf32>) permutation = [1, 0]
  %init = fp8.quantize %turned scale(%one, %one : tensor<4x1xf32>, tensor<4x1xf32>) : tensor<4x2xf32> -> !w
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%last = %init) -> !w {
    %q = fp8.quantize %turned scale(%one, %one : tensor<4x1xf32>, tensor<4x1xf32>) : tensor<4x2xf32> -> !w
    scf.yield %q : !w
  }
  return %r : !w
}

// -----

// The copy for another layout is made of the codes: both uses share them.

!w = !fp8.scaled<2x4xf8E4M3FN, block = [*, *], scale = f32>
!wt = !fp8.scaled<4x2xf8E4M3FN, block = [*, *], scale = f32>

// CHECK-LABEL: func.func @two_layouts
func.func @two_layouts() -> (!w, !wt) {
  // CHECK-NEXT: arith.constant dense<2.000000e+00> : tensor<2x4xf8E4M3FN>
  // CHECK-NEXT: arith.constant dense<1.000000e+00> : tensor<1x1xf32>
  // CHECK-NEXT: %[[Q:.*]] = fp8.assemble
  // CHECK-NEXT: %[[T:.*]] = fp8.transpose %[[Q]]
  // CHECK-NEXT: return %[[Q]], %[[T]]
  %w = arith.constant dense<2.0> : tensor<2x4xbf16>
  %one = arith.constant dense<1.0> : tensor<1x1xf32>
  %q = fp8.quantize %w scale(%one, %one : tensor<1x1xf32>, tensor<1x1xf32>) : tensor<2x4xbf16> -> !w
  %t = fp8.transpose %q permutation = [1, 0] : !w
  return %q, %t : !w, !wt
}

// -----

// High-precision values on the way are larger than the codes: they are not
// kept, and what else uses them still computes them.

!w = !fp8.scaled<2x4xf8E4M3FN, block = [*, *], scale = f32>

// CHECK-LABEL: func.func @dequantized
func.func @dequantized() -> (tensor<2x4xf32>, tensor<2x4xbf16>) {
  // CHECK: %[[W:.*]] = arith.constant dense<2.000000e+00> : tensor<2x4xbf16>
  // CHECK: %[[Q:.*]] = fp8.assemble
  // CHECK: %[[D:.*]] = fp8.dequantize %[[Q]]
  // CHECK: return %[[D]], %[[W]]
  %w = arith.constant dense<2.0> : tensor<2x4xbf16>
  %one = arith.constant dense<1.0> : tensor<1x1xf32>
  %q = fp8.quantize %w scale(%one, %one : tensor<1x1xf32>, tensor<1x1xf32>) : tensor<2x4xbf16> -> !w
  %d = fp8.dequantize %q : !w -> tensor<2x4xf32>
  return %d, %w : tensor<2x4xf32>, tensor<2x4xbf16>
}

// -----

// What is measured of a constant is constant.

!w = !fp8.scaled<2x4xf8E4M3FN, block = [*, *], scale = f32>
func.func private @record(f64, f64, f64, f64, f64)

// CHECK-LABEL: func.func @measured
func.func @measured() -> !w {
  // CHECK-NOT: fp8.measure
  // CHECK-DAG: %[[AMAX:.*]] = arith.constant 2.000000e+03 : f64
  // CHECK-DAG: %[[SATURATED:.*]] = arith.constant 8.000000e+00 : f64
  // CHECK: call @record(%[[AMAX]], %{{[^,]*}}, %[[SATURATED]],
  %w = arith.constant dense<2000.0> : tensor<2x4xf16>
  %one = arith.constant dense<1.0> : tensor<1x1xf32>
  %q = fp8.quantize %w scale(%one, %one : tensor<1x1xf32>, tensor<1x1xf32>) : tensor<2x4xf16> -> !w
  %amax, %underflow, %saturated, %signal, %noise = fp8.measure %w, %q : tensor<2x4xf16>, !w
  func.call @record(%amax, %underflow, %saturated, %signal, %noise) : (f64, f64, f64, f64, f64) -> ()
  return %q : !w
}

// -----

// More than 4096 bytes are data of a resource, which is neither copied nor
// printed when it need not be.

!w = !fp8.scaled<3x2048xf8E4M3FN, block = [1, *], scale = f32>

// CHECK-LABEL: func.func @large
func.func @large() -> !w {
  // CHECK: arith.constant dense_resource<fp8_constant> : tensor<3x2048xf8E4M3FN>
  // CHECK: arith.constant dense<1.000000e+00> : tensor<3x1xf32>
  %w = arith.constant dense<1.0> : tensor<1x2048xbf16>
  %v = arith.constant dense<2.0> : tensor<2x2048xbf16>
  %one = arith.constant dense<1.0> : tensor<3x1xf32>
  %both = tensor.concat dim(0) %w, %v : (tensor<1x2048xbf16>, tensor<2x2048xbf16>) -> tensor<3x2048xbf16>
  %q = fp8.quantize %both scale(%one, %one : tensor<3x1xf32>, tensor<3x1xf32>) : tensor<3x2048xbf16> -> !w
  return %q : !w
}
// CHECK: fp8_constant: "0x40000000{{(38)+(40)+}}"
