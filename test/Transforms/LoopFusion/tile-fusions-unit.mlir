// RUN: fp8-opt %s --fp8-form-fusions --fp8-tile-fusions="elements=256" | FileCheck %s

// Dimensions of extent 1 beside the domain's: they are in no tile's place, and one
// element of each is read.

#id = affine_map<(i, j) -> (i, j)>
#front = affine_map<(i, j) -> (0, i, j)>
#middle = affine_map<(i, j) -> (i, 0, j)>

// CHECK-LABEL: func.func private @front_fusion
// CHECK: scf.forall (%[[I:.*]], %[[J:.*]]) in (16, 2)
// CHECK: tensor.extract_slice %{{.*}}[0, %{{.*}}, %{{.*}}] [1, 8, 32] [1, 1, 1] : tensor<1x128x64xf32> to tensor<1x8x32xf32>
func.func @front(%x: tensor<1x128x64xf32>) -> tensor<128x64xbf16> {
  %e = tensor.empty() : tensor<128x64xbf16>
  %y = linalg.generic {indexing_maps = [#front, #id], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<1x128x64xf32>) outs(%e : tensor<128x64xbf16>) {
  ^bb0(%in: f32, %out: bf16):
    %v = arith.truncf %in : f32 to bf16
    linalg.yield %v : bf16
  } -> tensor<128x64xbf16>
  return %y : tensor<128x64xbf16>
}

// Also of an unknown extent, which the program that runs knows to be 1.

// CHECK-LABEL: func.func private @middle_fusion
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<?x?x64xf32>
// CHECK: %[[ROWS:.*]] = tensor.dim %[[X]], %c0
// CHECK: %[[N:.*]] = affine.apply #{{.*}}()[%[[ROWS]]]
// CHECK: scf.forall (%[[I:.*]], %[[J:.*]]) in (%[[N]], 2)
// CHECK: tensor.extract_slice %[[X]][%{{.*}}, 0, %{{.*}}] [%{{.*}}, 1, 32] [1, 1, 1] : tensor<?x?x64xf32> to tensor<?x1x32xf32>
func.func @middle(%x: tensor<?x?x64xf32>, %rows: index) -> tensor<?x64xbf16> {
  %e = tensor.empty(%rows) : tensor<?x64xbf16>
  %y = linalg.generic {indexing_maps = [#middle, #id], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<?x?x64xf32>) outs(%e : tensor<?x64xbf16>) {
  ^bb0(%in: f32, %out: bf16):
    %v = arith.truncf %in : f32 to bf16
    linalg.yield %v : bf16
  } -> tensor<?x64xbf16>
  return %y : tensor<?x64xbf16>
}
