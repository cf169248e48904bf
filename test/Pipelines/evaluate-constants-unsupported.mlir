// RUN: fp8-opt %s --fp8-evaluate-constants --split-input-file | FileCheck %s

// What is computed in every call, as before.

!w = !fp8.scaled<2x4xf8E4M3FN, block = [*, *], scale = f32>

// CHECK-LABEL: func.func @argument
func.func @argument(%scale: tensor<1x1xf32>) -> !w {
  // CHECK: fp8.quantize
  %w = arith.constant dense<2.0> : tensor<2x4xbf16>
  %q = fp8.quantize %w scale(%scale, %scale : tensor<1x1xf32>, tensor<1x1xf32>) : tensor<2x4xbf16> -> !w
  return %q : !w
}

// -----

!w = !fp8.scaled<2x4xf8E4M3FN, block = [*, *], scale = f32>

// CHECK-LABEL: func.func @no_scale
func.func @no_scale() -> !w {
  // CHECK: fp8.quantize %{{.*}} recipe(#fp8.current)
  %w = arith.constant dense<2.0> : tensor<2x4xbf16>
  %q = fp8.quantize %w recipe(#fp8.current) : tensor<2x4xbf16> -> !w
  return %q : !w
}

// -----

// There is nothing to do.

!w = !fp8.scaled<2x4xf8E4M3FN, block = [*, *], scale = f32>

// CHECK-LABEL: func.func @constant_already
func.func @constant_already() -> !w {
  // CHECK-NEXT: arith.constant dense<2.000000e+00> : tensor<2x4xf8E4M3FN>
  // CHECK-NEXT: arith.constant dense<1.000000e+00> : tensor<1x1xf32>
  // CHECK-NEXT: fp8.assemble
  // CHECK-NEXT: return
  %codes = arith.constant dense<2.0> : tensor<2x4xf8E4M3FN>
  %one = arith.constant dense<1.0> : tensor<1x1xf32>
  %q = fp8.assemble %codes, %one : tensor<2x4xf8E4M3FN>, tensor<1x1xf32> -> !w
  return %q : !w
}

// -----

// 8192 bytes of codes that follow from 2: cheaper to compute than to keep.

!w = !fp8.scaled<64x128xf8E4M3FN, block = [*, *], scale = f32>

// CHECK-LABEL: func.func @broadcast
func.func @broadcast() -> !w {
  // CHECK: linalg.broadcast
  // CHECK: fp8.quantize
  %w = arith.constant dense<2.0> : tensor<1xbf16>
  %one = arith.constant dense<1.0> : tensor<1x1xf32>
  %row_empty = tensor.empty() : tensor<1x128xbf16>
  %row = linalg.broadcast ins(%w : tensor<1xbf16>) outs(%row_empty : tensor<1x128xbf16>) dimensions = [1]
  %flat = tensor.collapse_shape %row [[0, 1]] : tensor<1x128xbf16> into tensor<128xbf16>
  %empty = tensor.empty() : tensor<64x128xbf16>
  %all = linalg.broadcast ins(%flat : tensor<128xbf16>) outs(%empty : tensor<64x128xbf16>) dimensions = [0]
  %q = fp8.quantize %all scale(%one, %one : tensor<1x1xf32>, tensor<1x1xf32>) : tensor<64x128xbf16> -> !w
  return %q : !w
}

// -----

// The order of sums is not ours to promise: neither of the product nor what
// follows from it.

!w = !fp8.scaled<4x4xf8E4M3FN, block = [*, *], scale = f32>

// CHECK-LABEL: func.func @sums
func.func @sums() -> (!w, tensor<4x4xf32>) {
  // CHECK: linalg.matmul
  // CHECK: fp8.quantize
  // CHECK: fp8.assemble
  // CHECK: fp8.matmul
  %w = arith.constant dense<2.0> : tensor<4x4xf32>
  %one = arith.constant dense<1.0> : tensor<1x1xf32>
  %product = linalg.matmul ins(%w, %w : tensor<4x4xf32>, tensor<4x4xf32>) outs(%w : tensor<4x4xf32>) -> tensor<4x4xf32>
  %q = fp8.quantize %product scale(%one, %one : tensor<1x1xf32>, tensor<1x1xf32>) : tensor<4x4xf32> -> !w
  %v = fp8.quantize %w scale(%one, %one : tensor<1x1xf32>, tensor<1x1xf32>) : tensor<4x4xf32> -> !w
  %y = fp8.matmul %v, %v : !w, !w -> tensor<4x4xf32>
  return %q, %y : !w, tensor<4x4xf32>
}

// -----

// A resource without its data, as in a program printed without large elements,
// and one of another size.

!w = !fp8.scaled<2x4xf8E4M3FN, block = [*, *], scale = f32>

// CHECK-LABEL: func.func @no_data
func.func @no_data() -> (!w, !w) {
  // CHECK-COUNT-2: fp8.quantize
  %w = arith.constant dense_resource<absent> : tensor<2x4xbf16>
  %v = arith.constant dense_resource<short> : tensor<2x4xbf16>
  %one = arith.constant dense<1.0> : tensor<1x1xf32>
  %q = fp8.quantize %w scale(%one, %one : tensor<1x1xf32>, tensor<1x1xf32>) : tensor<2x4xbf16> -> !w
  %p = fp8.quantize %v scale(%one, %one : tensor<1x1xf32>, tensor<1x1xf32>) : tensor<2x4xbf16> -> !w
  return %q, %p : !w, !w
}
{-# dialect_resources: { builtin: { short: "0x0200000000400040" } } #-}
