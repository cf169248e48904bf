// RUN: fp8-opt --fp8-set-target=chip=sm_90a --fp8-select-kernels %s | FileCheck %s

// A word of each row a lane: larger elements need more loads of fewer warps.

// CHECK-LABEL: func.func @bytes
// CHECK: fp8.transpose %{{.*}} permutation = [1, 0] {fp8_gpu.config = #fp8_transpose.config<warps = 8>}
func.func @bytes(%q: !fp8.scaled<256x64xf8E4M3FN, block = [*, *], scale = f32>) -> !fp8.scaled<64x256xf8E4M3FN, block = [*, *], scale = f32> {
  %0 = fp8.transpose %q permutation = [1, 0] : !fp8.scaled<256x64xf8E4M3FN, block = [*, *], scale = f32>
  return %0 : !fp8.scaled<64x256xf8E4M3FN, block = [*, *], scale = f32>
}

// CHECK-LABEL: func.func @halves
// CHECK: linalg.transpose {{.*}} {fp8_gpu.config = #fp8_transpose.config<warps = 4>}
func.func @halves(%x: tensor<256x64xbf16>, %y: tensor<64x256xbf16>) -> tensor<64x256xbf16> {
  %0 = linalg.transpose ins(%x : tensor<256x64xbf16>) outs(%y : tensor<64x256xbf16>) permutation = [1, 0]
  return %0 : tensor<64x256xbf16>
}

// CHECK-LABEL: func.func @words_of_a_batch
// CHECK: linalg.transpose {{.*}} {fp8_gpu.config = #fp8_transpose.config<warps = 2>}
func.func @words_of_a_batch(%x: tensor<3x5x7xf32>, %y: tensor<3x7x5xf32>) -> tensor<3x7x5xf32> {
  %0 = linalg.transpose ins(%x : tensor<3x5x7xf32>) outs(%y : tensor<3x7x5xf32>) permutation = [0, 2, 1]
  return %0 : tensor<3x7x5xf32>
}

// Words start at words.

// CHECK-LABEL: func.func @unknown_words
// CHECK: linalg.transpose {{.*}} {fp8_gpu.config =
func.func @unknown_words(%x: tensor<?x?xf32>, %y: tensor<?x?xf32>) -> tensor<?x?xf32> {
  %0 = linalg.transpose ins(%x : tensor<?x?xf32>) outs(%y : tensor<?x?xf32>) permutation = [1, 0]
  return %0 : tensor<?x?xf32>
}

// The matmul that takes it has a kernel only if they do; at the launch they are
// checked.

// CHECK-LABEL: func.func @unknown_codes
// CHECK: fp8.transpose {{.*}} {fp8_gpu.config =
func.func @unknown_codes(%q: !fp8.scaled<64x?xf8E4M3FN, block = [*, *], scale = f32>, %w: !fp8.scaled<32x64xf8E4M3FN, block = [*, *], scale = f32>) -> tensor<?x32xf32> {
  %0 = fp8.transpose %q permutation = [1, 0] : !fp8.scaled<64x?xf8E4M3FN, block = [*, *], scale = f32>
  %1 = fp8.matmul %0, %w : !fp8.scaled<?x64xf8E4M3FN, block = [*, *], scale = f32>, !fp8.scaled<32x64xf8E4M3FN, block = [*, *], scale = f32> -> tensor<?x32xf32>
  return %1 : tensor<?x32xf32>
}
