// RUN: fp8-opt %s --fp8-set-target=chip=sm_100a --fp8-select-kernels --split-input-file --verify-diagnostics
// RUN: fp8-opt %s --fp8-set-target=chip=sm_100a --fp8-select-kernels --split-input-file 2>/dev/null | FileCheck %s

// What no kernel computes is a loop over the groups.

// CHECK-NOT: fp8_gpu.config

func.func @k(%dy: tensor<512x1024xbf16>, %x: tensor<256x1024xbf16>, %offsets: tensor<5xi32>) -> tensor<4x512x256xf32> {
  // expected-remark @below {{no kernel: expected no groups of K}}
  %0 = fp8.grouped_matmul %dy, %x offsets(%offsets : tensor<5xi32>) accumulate = fast
      : tensor<512x1024xbf16>, tensor<256x1024xbf16> -> tensor<4x512x256xf32>
  return %0 : tensor<4x512x256xf32>
}

// -----

!x = !fp8.scaled<256x1056xf8E4M3FN, block = [1, 32], scale = f8E8M0FNU>
!w = !fp8.scaled<4x512x1056xf8E4M3FN, block = [1, 1, 32], scale = f8E8M0FNU>
func.func @part_of_a_block(%x: !x, %w: !w, %offsets: tensor<5xi32>) -> tensor<256x512xbf16> {
  // expected-remark @below {{no kernel: expected a known K that is a multiple of 128, with factors of 32}}
  %0 = fp8.grouped_matmul %x, %w offsets(%offsets : tensor<5xi32>) : !x, !w -> tensor<256x512xbf16>
  return %0 : tensor<256x512xbf16>
}

// -----

// Where groups begin is not known to be a multiple of 16 bytes, at which bulk
// copies of rows that lie side by side would begin.

!x = !fp8.scaled<1024x256xf8E4M3FN, block = [*, *], scale = f32>
!w = !fp8.scaled<4x512x1024xf8E4M3FN, block = [*, *, *], scale = f32>
func.func @rows_innermost(%x: !x, %w: !w, %offsets: tensor<5xi32>) -> tensor<256x512xbf16> {
  // expected-remark @below {{no kernel: expected K to be the innermost dimension of A with groups of rows, as bulk copies begin at multiples of 16 bytes}}
  %0 = fp8.grouped_matmul %x, %w offsets(%offsets : tensor<5xi32>) transpose_a accumulate = fast
      : !x, !w -> tensor<256x512xbf16>
  return %0 : tensor<256x512xbf16>
}
