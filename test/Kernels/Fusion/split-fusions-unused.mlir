// RUN: fp8-opt --fp8-set-target=chip=sm_90a --fp8-split-fusions --fp8-select-kernels %s 2>%t | FileCheck %s
#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
#column = affine_map<(i, j) -> (j)>
!x = tensor<8192x64xf32>

// What nobody asks for is not computed.

// CHECK-LABEL: func.func @unused
// CHECK-NOT:   arith.addf
// CHECK:       fp8.amax %{{.+}} block = [128, 1]
// CHECK-NOT:   arith.addf
// CHECK:       fp8.amax %{{.+}} block = [*, 1]
func.func @unused(%x: !x) -> tensor<1x64xf32> {
  %0 = fp8.fusion(%x) {
  ^bb0(%a: !x):
    %zero = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<64xf32>
    %z = linalg.fill ins(%zero : f32) outs(%e : tensor<64xf32>) -> tensor<64xf32>
    %s = linalg.generic {indexing_maps = [#id, #column], iterator_types = ["reduction", "parallel"]} ins(%a : !x) outs(%z : tensor<64xf32>) {
    ^bb0(%v: f32, %o: f32):
      %1 = arith.addf %o, %v : f32
      linalg.yield %1 : f32
    } -> tensor<64xf32>
    %m = fp8.amax %a block = [*, 1] : !x
    fp8.yield %m : tensor<1x64xf32>
  } : (!x) -> tensor<1x64xf32>
  return %0 : tensor<1x64xf32>
}
