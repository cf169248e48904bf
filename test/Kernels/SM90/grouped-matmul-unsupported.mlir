// RUN: fp8-opt %s --fp8-set-target=chip=sm_90a --fp8-select-kernels --split-input-file --verify-diagnostics
// RUN: fp8-opt %s --fp8-set-target=chip=sm_90a --fp8-select-kernels --split-input-file 2>/dev/null | FileCheck %s

// What no kernel computes is a loop over the groups.

// CHECK-NOT: fp8_gpu.config

!x = !fp8.scaled<256x96xf8E4M3FN, block = [1, 32], scale = f8E8M0FNU>
!w = !fp8.scaled<4x512x96xf8E4M3FN, block = [1, 1, 32], scale = f8E8M0FNU>
func.func @mxfp8(%x: !x, %w: !w, %offsets: tensor<5xi32>) -> tensor<256x512xbf16> {
  // expected-remark @below {{no kernel: expected K to be a multiple of 128, of which there is a word of factors, but got 96}}
  %0 = fp8.grouped_matmul %x, %w offsets(%offsets : tensor<5xi32>) : !x, !w -> tensor<256x512xbf16>
  return %0 : tensor<256x512xbf16>
}

// -----

func.func @f32(%x: tensor<256x1024xf32>, %w: tensor<4x512x1024xf32>, %offsets: tensor<5xi32>) -> tensor<256x512xf32> {
  // expected-remark @below {{no kernel: expected no operands in f32, which tensor cores round to TF32}}
  %0 = fp8.grouped_matmul %x, %w offsets(%offsets : tensor<5xi32>) accumulate = fast
      : tensor<256x1024xf32>, tensor<4x512x1024xf32> -> tensor<256x512xf32>
  return %0 : tensor<256x512xf32>
}

// -----

func.func @unknown(%x: tensor<256x1024xbf16>, %w: tensor<?x512x1024xbf16>, %offsets: tensor<?xi32>) -> tensor<256x512xbf16> {
  // expected-remark @below {{no kernel: expected a known number of groups from 1 to 1024}}
  %0 = fp8.grouped_matmul %x, %w offsets(%offsets : tensor<?xi32>) accumulate = fast
      : tensor<256x1024xbf16>, tensor<?x512x1024xbf16> -> tensor<256x512xbf16>
  return %0 : tensor<256x512xbf16>
}

// -----

// Where groups begin is not known to be a multiple of 16 bytes, at which bulk
// copies of rows that lie side by side would begin.

func.func @rows_innermost(%x: tensor<1024x256xbf16>, %w: tensor<4x512x1024xbf16>, %offsets: tensor<5xi32>) -> tensor<256x512xbf16> {
  // expected-remark @below {{no kernel: expected K to be the innermost dimension of A with groups of rows, as bulk copies begin at multiples of 16 bytes}}
  %0 = fp8.grouped_matmul %x, %w offsets(%offsets : tensor<5xi32>) transpose_a accumulate = fast
      : tensor<1024x256xbf16>, tensor<4x512x1024xbf16> -> tensor<256x512xbf16>
  return %0 : tensor<256x512xbf16>
}
