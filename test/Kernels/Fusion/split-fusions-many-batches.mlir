// RUN: fp8-opt --fp8-set-target=chip=sm_90a --fp8-split-fusions --fp8-select-kernels %s 2>%t | FileCheck %s
// RUN: not grep "no kernel" %t

// Many batches of few rows, and batches whose parts are too many together (the
// gradient of a bias over [batch, sequence]).

// CHECK-LABEL: func.func @small_batches
// CHECK:       {fp8_gpu.config = #fp8_fusion.config<
func.func @small_batches(%x: tensor<2048x64x512xf32>) -> tensor<512xf32> {
  %0 = fp8.fusion(%x) {
  ^bb0(%a: tensor<2048x64x512xf32>):
    %zero = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<512xf32>
    %z = linalg.fill ins(%zero : f32) outs(%e : tensor<512xf32>) -> tensor<512xf32>
    %1 = linalg.generic {indexing_maps = [affine_map<(b, i, j) -> (b, i, j)>, affine_map<(b, i, j) -> (j)>], iterator_types = ["reduction", "reduction", "parallel"]} ins(%a : tensor<2048x64x512xf32>) outs(%z : tensor<512xf32>) {
    ^bb0(%v: f32, %o: f32):
      %2 = arith.addf %o, %v : f32
      linalg.yield %2 : f32
    } -> tensor<512xf32>
    fp8.yield %1 : tensor<512xf32>
  } : (tensor<2048x64x512xf32>) -> tensor<512xf32>
  return %0 : tensor<512xf32>
}

// CHECK-LABEL: func.func @many_batches
// CHECK-COUNT-2: {fp8_gpu.config = #fp8_fusion.config<
func.func @many_batches(%x: tensor<64x2048x512xf32>) -> tensor<512xf32> {
  %0 = fp8.fusion(%x) {
  ^bb0(%a: tensor<64x2048x512xf32>):
    %zero = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<512xf32>
    %z = linalg.fill ins(%zero : f32) outs(%e : tensor<512xf32>) -> tensor<512xf32>
    %1 = linalg.generic {indexing_maps = [affine_map<(b, i, j) -> (b, i, j)>, affine_map<(b, i, j) -> (j)>], iterator_types = ["reduction", "reduction", "parallel"]} ins(%a : tensor<64x2048x512xf32>) outs(%z : tensor<512xf32>) {
    ^bb0(%v: f32, %o: f32):
      %2 = arith.addf %o, %v : f32
      linalg.yield %2 : f32
    } -> tensor<512xf32>
    fp8.yield %1 : tensor<512xf32>
  } : (tensor<64x2048x512xf32>) -> tensor<512xf32>
  return %0 : tensor<512xf32>
}
