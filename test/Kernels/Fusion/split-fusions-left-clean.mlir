// RUN: fp8-opt --fp8-set-target=chip=sm_90a --fp8-split-fusions %s | FileCheck %s

// What is not taken apart is left as it is, also if that was tried.

// CHECK-LABEL: func.func @integers
// CHECK-SAME:  %[[X:.+]]: tensor<?x64xi32>
// CHECK-NEXT:  fp8.fusion(%[[X]]) {
// CHECK-COUNT-1: linalg.fill
// CHECK-NOT:   linalg.fill
func.func @integers(%x: tensor<?x64xi32>) -> tensor<64xf32> {
  %0 = fp8.fusion(%x) {
  ^bb0(%a: tensor<?x64xi32>):
    %zero = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<64xf32>
    %z = linalg.fill ins(%zero : f32) outs(%e : tensor<64xf32>) -> tensor<64xf32>
    %1 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>], iterator_types = ["reduction", "parallel"]} ins(%a : tensor<?x64xi32>) outs(%z : tensor<64xf32>) {
    ^bb0(%v: i32, %o: f32):
      %2 = arith.sitofp %v : i32 to f32
      %3 = arith.addf %o, %2 : f32
      linalg.yield %3 : f32
    } -> tensor<64xf32>
    fp8.yield %1 : tensor<64xf32>
  } : (tensor<?x64xi32>) -> tensor<64xf32>
  return %0 : tensor<64xf32>
}
