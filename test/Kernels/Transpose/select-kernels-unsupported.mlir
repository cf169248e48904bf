// RUN: fp8-opt --fp8-set-target=chip=sm_90a --fp8-select-kernels --verify-diagnostics %s | FileCheck %s

// CHECK-NOT: fp8_gpu.config =

func.func @other_dimensions(%x: tensor<4x8x12xf32>, %y: tensor<8x4x12xf32>) -> tensor<8x4x12xf32> {
  // expected-remark @below {{no kernel: expected the last of two or three dimensions to be exchanged, but got [1, 0, 2]}}
  %0 = linalg.transpose ins(%x : tensor<4x8x12xf32>) outs(%y : tensor<8x4x12xf32>) permutation = [1, 0, 2]
  return %0 : tensor<8x4x12xf32>
}

func.func @of_four(%x: tensor<2x3x4x8xf32>, %y: tensor<2x3x8x4xf32>) -> tensor<2x3x8x4xf32> {
  // expected-remark @below {{no kernel: expected the last of two or three dimensions to be exchanged, but got [0, 1, 3, 2]}}
  %0 = linalg.transpose ins(%x : tensor<2x3x4x8xf32>) outs(%y : tensor<2x3x8x4xf32>) permutation = [0, 1, 3, 2]
  return %0 : tensor<2x3x8x4xf32>
}

func.func @wide(%x: tensor<4x8xf64>, %y: tensor<8x4xf64>) -> tensor<8x4xf64> {
  // expected-remark @below {{no kernel: expected elements of 8, 16 or 32 bits, but got f64}}
  %0 = linalg.transpose ins(%x : tensor<4x8xf64>) outs(%y : tensor<8x4xf64>) permutation = [1, 0]
  return %0 : tensor<8x4xf64>
}

func.func @rows_between_words(%q: !fp8.scaled<30x64xf8E4M3FN, block = [*, *], scale = f32>) -> !fp8.scaled<64x30xf8E4M3FN, block = [*, *], scale = f32> {
  // expected-remark @below {{no kernel: expected the number of rows to be a multiple of 4, so that they start at words, but got 30}}
  %0 = fp8.transpose %q permutation = [1, 0] : !fp8.scaled<30x64xf8E4M3FN, block = [*, *], scale = f32>
  return %0 : !fp8.scaled<64x30xf8E4M3FN, block = [*, *], scale = f32>
}

func.func @columns_between_words(%x: tensor<4x7xbf16>, %y: tensor<7x4xbf16>) -> tensor<7x4xbf16> {
  // expected-remark @below {{no kernel: expected the number of columns to be a multiple of 2, so that they start at words, but got 7}}
  %0 = linalg.transpose ins(%x : tensor<4x7xbf16>) outs(%y : tensor<7x4xbf16>) permutation = [1, 0]
  return %0 : tensor<7x4xbf16>
}

func.func @indices(%x: tensor<4x8xindex>, %y: tensor<8x4xindex>) -> tensor<8x4xindex> {
  // expected-remark @below {{no kernel: expected elements of 8, 16 or 32 bits, but got index}}
  %0 = linalg.transpose ins(%x : tensor<4x8xindex>) outs(%y : tensor<8x4xindex>) permutation = [1, 0]
  return %0 : tensor<8x4xindex>
}

func.func @memory(%x: memref<4x8xf32>, %y: memref<8x4xf32>) {
  // expected-remark @below {{no kernel: expected tensors, but got memrefs}}
  linalg.transpose ins(%x : memref<4x8xf32>) outs(%y : memref<8x4xf32>) permutation = [1, 0]
  return
}

func.func @unknown_columns(%x: tensor<8x?xf16>, %y: tensor<?x8xf16>) -> tensor<?x8xf16> {
  // expected-remark @below {{no kernel: expected the numbers of rows and columns to be known, so that they start at words}}
  %0 = linalg.transpose ins(%x : tensor<8x?xf16>) outs(%y : tensor<?x8xf16>) permutation = [1, 0]
  return %0 : tensor<?x8xf16>
}

// Nor that of codes which no matmul takes.

func.func @unknown_codes(%q: !fp8.scaled<?x64xf8E4M3FN, block = [*, *], scale = f32>) -> !fp8.scaled<64x?xf8E4M3FN, block = [*, *], scale = f32> {
  // expected-remark @below {{no kernel: expected the numbers of rows and columns to be known, so that they start at words}}
  %0 = fp8.transpose %q permutation = [1, 0] : !fp8.scaled<?x64xf8E4M3FN, block = [*, *], scale = f32>
  return %0 : !fp8.scaled<64x?xf8E4M3FN, block = [*, *], scale = f32>
}
