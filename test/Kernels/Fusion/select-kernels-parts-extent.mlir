// RUN: fp8-opt --fp8-set-target=chip=sm_90a --fp8-select-kernels --verify-diagnostics %s -o /dev/null

// Linalg lets a result have more parts than there are: the others keep what it
// began with, but a kernel does not write them.

func.func @more_parts(%x: tensor<256x64xf32>) -> tensor<3x64xf32> {
  // expected-remark @below {{no kernel: expected a result for each block}}
  %0 = fp8.fusion(%x) {
  ^bb0(%a: tensor<256x64xf32>):
    %zero = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<3x64xf32>
    %z = linalg.fill ins(%zero : f32) outs(%e : tensor<3x64xf32>) -> tensor<3x64xf32>
    %1 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i floordiv 128, j)>], iterator_types = ["reduction", "parallel"]} ins(%a : tensor<256x64xf32>) outs(%z : tensor<3x64xf32>) {
    ^bb0(%v: f32, %o: f32):
      %2 = arith.addf %o, %v : f32
      linalg.yield %2 : f32
    } -> tensor<3x64xf32>
    fp8.yield %1 : tensor<3x64xf32>
  } : (tensor<256x64xf32>) -> tensor<3x64xf32>
  return %0 : tensor<3x64xf32>
}
