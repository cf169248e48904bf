// RUN: fp8-opt %s --split-input-file --fp8-fold-lifts=chip=sm_90a --verify-diagnostics | FileCheck %s
// RUN: not fp8-opt %s --split-input-file --fp8-fold-lifts -o /dev/null 2>&1 | FileCheck %s --check-prefix=CPU
// Arranged codes are read by kernels, whatever that is expected to take, and by nobody else.

// CPU: error: expected arranged weights to be the B of matmuls
// CHECK-LABEL: func.func @many_rows
// CHECK: fp8.dequantize %{{.*}} {fp8.folded}
func.func @many_rows(%x: tensor<8192x256xbf16>, %w: tensor<512x256xf4E2M1FN> {fp8.arranged = 1}, %f: tensor<512x16xf8E4M3FN>) -> tensor<8192x512xbf16> {
  %one = arith.constant dense<1.0> : tensor<1x1xf32>
  %s = fp8.assemble %w, %f, %one : tensor<512x256xf4E2M1FN>, tensor<512x16xf8E4M3FN>, tensor<1x1xf32> -> !fp8.scaled<512x256xf4E2M1FN, block = [1, 16], scale = f8E4M3FN, tensor_scale = f32>
  %d = fp8.dequantize %s : !fp8.scaled<512x256xf4E2M1FN, block = [1, 16], scale = f8E4M3FN, tensor_scale = f32> -> tensor<512x256xbf16>
  %r = fp8.matmul %x, %d accumulate = fast : tensor<8192x256xbf16>, tensor<512x256xbf16> -> tensor<8192x512xbf16>
  return %r : tensor<8192x512xbf16>
}

// -----

// E4M3 may be arranged, too.
// CHECK-LABEL: func.func @e4m3
// CHECK: fp8.dequantize %{{.*}} {fp8.folded}
func.func @e4m3(%x: tensor<8x256xbf16>, %w: tensor<512x256xf8E4M3FN> {fp8.arranged = 1}, %f: tensor<512x8xf8E8M0FNU>) -> tensor<8x512xbf16> {
  %s = fp8.assemble %w, %f : tensor<512x256xf8E4M3FN>, tensor<512x8xf8E8M0FNU> -> !fp8.scaled<512x256xf8E4M3FN, block = [1, 32], scale = f8E8M0FNU>
  %d = fp8.dequantize %s : !fp8.scaled<512x256xf8E4M3FN, block = [1, 32], scale = f8E8M0FNU> -> tensor<512x256xbf16>
  %r = fp8.matmul %x, %d accumulate = fast : tensor<8x256xbf16>, tensor<512x256xbf16> -> tensor<8x512xbf16>
  return %r : tensor<8x512xbf16>
}

// -----

// No tensor core multiplies codes that lie so.
func.func @as_they_are(%x: tensor<8x256xf8E4M3FN>, %xs: tensor<1x1xf32>, %w: tensor<512x256xf8E4M3FN> {fp8.arranged = 1}, %f: tensor<1x1xf32>) -> tensor<8x512xbf16> {
  %a = fp8.assemble %x, %xs : tensor<8x256xf8E4M3FN>, tensor<1x1xf32> -> !fp8.scaled<8x256xf8E4M3FN, block = [*, *], scale = f32>
  %s = fp8.assemble %w, %f : tensor<512x256xf8E4M3FN>, tensor<1x1xf32> -> !fp8.scaled<512x256xf8E4M3FN, block = [*, *], scale = f32>
  // expected-error@+1 {{expected arranged weights to be the B of matmuls that have a kernel for them on this target: give others plain ones}}
  %r = fp8.matmul %a, %s : !fp8.scaled<8x256xf8E4M3FN, block = [*, *], scale = f32>, !fp8.scaled<512x256xf8E4M3FN, block = [*, *], scale = f32> -> tensor<8x512xbf16>
  return %r : tensor<8x512xbf16>
}

// -----

// What becomes f16 is read, too.
// CHECK-LABEL: func.func @as_f16
// CHECK: fp8.dequantize %{{.*}} {fp8.folded}
func.func @as_f16(%x: tensor<8x256xf16>, %w: tensor<512x256xf4E2M1FN> {fp8.arranged = 1}, %f: tensor<512x16xf8E4M3FN>) -> tensor<8x512xf16> {
  %one = arith.constant dense<1.0> : tensor<1x1xf32>
  %s = fp8.assemble %w, %f, %one : tensor<512x256xf4E2M1FN>, tensor<512x16xf8E4M3FN>, tensor<1x1xf32> -> !fp8.scaled<512x256xf4E2M1FN, block = [1, 16], scale = f8E4M3FN, tensor_scale = f32>
  %d = fp8.dequantize %s : !fp8.scaled<512x256xf4E2M1FN, block = [1, 16], scale = f8E4M3FN, tensor_scale = f32> -> tensor<512x256xf16>
  %r = fp8.matmul %x, %d accumulate = fast : tensor<8x256xf16>, tensor<512x256xf16> -> tensor<8x512xf16>
  return %r : tensor<8x512xf16>
}

// -----

// No kernel makes f32 of codes.
func.func @as_f32(%x: tensor<8x256xf32>, %w: tensor<512x256xf4E2M1FN> {fp8.arranged = 1}, %f: tensor<512x16xf8E4M3FN>) -> tensor<8x512xf32> {
  %one = arith.constant dense<1.0> : tensor<1x1xf32>
  %s = fp8.assemble %w, %f, %one : tensor<512x256xf4E2M1FN>, tensor<512x16xf8E4M3FN>, tensor<1x1xf32> -> !fp8.scaled<512x256xf4E2M1FN, block = [1, 16], scale = f8E4M3FN, tensor_scale = f32>
  // expected-error@+1 {{expected arranged weights to be the B of matmuls that have a kernel for them on this target: give others plain ones}}
  %d = fp8.dequantize %s : !fp8.scaled<512x256xf4E2M1FN, block = [1, 16], scale = f8E4M3FN, tensor_scale = f32> -> tensor<512x256xf32>
  %r = fp8.matmul %x, %d accumulate = fast : tensor<8x256xf32>, tensor<512x256xf32> -> tensor<8x512xf32>
  return %r : tensor<8x512xf32>
}

// -----

// expected-error@+1 {{expected 'fp8.arranged' to be the version 1, but got 2 : i64}}
func.func private @another_version(%w: tensor<512x256xf4E2M1FN> {fp8.arranged = 2})

// -----

// A call hands them on to a function that knows.
// CHECK-LABEL: func.func private @layer
// CHECK: fp8.dequantize %{{.*}} {fp8.folded}
// CHECK-LABEL: func.func @handed_on
func.func private @layer(%x: tensor<8x256xbf16>, %w: tensor<512x256xf4E2M1FN> {fp8.arranged = 1}, %f: tensor<512x8xf8E8M0FNU>) -> tensor<8x512xbf16> {
  %s = fp8.assemble %w, %f : tensor<512x256xf4E2M1FN>, tensor<512x8xf8E8M0FNU> -> !fp8.scaled<512x256xf4E2M1FN, block = [1, 32], scale = f8E8M0FNU>
  %d = fp8.dequantize %s : !fp8.scaled<512x256xf4E2M1FN, block = [1, 32], scale = f8E8M0FNU> -> tensor<512x256xbf16>
  %r = fp8.matmul %x, %d accumulate = fast : tensor<8x256xbf16>, tensor<512x256xbf16> -> tensor<8x512xbf16>
  return %r : tensor<8x512xbf16>
}
func.func @handed_on(%x: tensor<8x256xbf16>, %w: tensor<512x256xf4E2M1FN> {fp8.arranged = 1}, %f: tensor<512x8xf8E8M0FNU>) -> tensor<8x512xbf16> {
  %r = call @layer(%x, %w, %f) : (tensor<8x256xbf16>, tensor<512x256xf4E2M1FN>, tensor<512x8xf8E8M0FNU>) -> tensor<8x512xbf16>
  return %r : tensor<8x512xbf16>
}

// -----

func.func private @layer(%x: tensor<8x256xbf16>, %w: tensor<512x256xf4E2M1FN> {fp8.arranged = 1}, %f: tensor<512x8xf8E8M0FNU>) -> tensor<8x512xbf16> {
  %s = fp8.assemble %w, %f : tensor<512x256xf4E2M1FN>, tensor<512x8xf8E8M0FNU> -> !fp8.scaled<512x256xf4E2M1FN, block = [1, 32], scale = f8E8M0FNU>
  %d = fp8.dequantize %s : !fp8.scaled<512x256xf4E2M1FN, block = [1, 32], scale = f8E8M0FNU> -> tensor<512x256xbf16>
  %r = fp8.matmul %x, %d accumulate = fast : tensor<8x256xbf16>, tensor<512x256xbf16> -> tensor<8x512xbf16>
  return %r : tensor<8x512xbf16>
}
func.func @plain_to_arranged(%x: tensor<8x256xbf16>, %w: tensor<512x256xf4E2M1FN>, %f: tensor<512x8xf8E8M0FNU>) -> tensor<8x512xbf16> {
  // expected-error@+1 {{expected arranged weights as operand 1, but got plain ones}}
  %r = call @layer(%x, %w, %f) : (tensor<8x256xbf16>, tensor<512x256xf4E2M1FN>, tensor<512x8xf8E8M0FNU>) -> tensor<8x512xbf16>
  return %r : tensor<8x512xbf16>
}

// -----

func.func private @layer(%x: tensor<8x256xbf16>, %w: tensor<512x256xf4E2M1FN>, %f: tensor<512x8xf8E8M0FNU>) -> tensor<8x512xbf16> {
  %s = fp8.assemble %w, %f : tensor<512x256xf4E2M1FN>, tensor<512x8xf8E8M0FNU> -> !fp8.scaled<512x256xf4E2M1FN, block = [1, 32], scale = f8E8M0FNU>
  %d = fp8.dequantize %s : !fp8.scaled<512x256xf4E2M1FN, block = [1, 32], scale = f8E8M0FNU> -> tensor<512x256xbf16>
  %r = fp8.matmul %x, %d accumulate = fast : tensor<8x256xbf16>, tensor<512x256xbf16> -> tensor<8x512xbf16>
  return %r : tensor<8x512xbf16>
}
func.func @arranged_to_plain(%x: tensor<8x256xbf16>, %w: tensor<512x256xf4E2M1FN> {fp8.arranged = 1}, %f: tensor<512x8xf8E8M0FNU>) -> tensor<8x512xbf16> {
  // expected-error@+1 {{expected arranged weights to be the B of matmuls that have a kernel for them on this target: give others plain ones}}
  %r = call @layer(%x, %w, %f) : (tensor<8x256xbf16>, tensor<512x256xf4E2M1FN>, tensor<512x8xf8E8M0FNU>) -> tensor<8x512xbf16>
  return %r : tensor<8x512xbf16>
}
