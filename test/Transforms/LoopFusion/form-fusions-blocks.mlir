// RUN: fp8-opt %s --fp8-form-fusions --canonicalize | FileCheck %s
// RUN: fp8-opt %s --fp8-form-fusions --fp8-tile-fusions --canonicalize --cse | FileCheck %s --check-prefix=TILES

// What a block has in common is read by the block's index, in the pass that
// measured it or in another.

#id = affine_map<(i, j) -> (i, j)>
#block = affine_map<(i, j) -> (i, j floordiv 128)>
#square = affine_map<(i, j) -> (i floordiv 128, j floordiv 128)>
!x = tensor<32x256xf32>
!s = tensor<32x2xf32>

// CHECK-LABEL: func.func @measured(
// CHECK: fp8.fusion(%arg0)
// CHECK: fp8.amax
// CHECK: fp8.compute_scale
// CHECK: linalg.generic
// CHECK: fp8.yield
// CHECK-NOT: linalg.generic
// CHECK: return
func.func @measured(%x: !x) -> !x {
  %amax = fp8.amax %x block = [1, 128] : !x
  %s, %i = fp8.compute_scale %amax format = f8E4M3FN scale_type = f32 : !s
  %e = tensor.empty() : !x
  %y = linalg.generic {indexing_maps = [#id, #block, #id], iterator_types = ["parallel", "parallel"]} ins(%x, %s : !x, !s) outs(%e : !x) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %0 = arith.mulf %a, %b : f32
    linalg.yield %0 : f32
  } -> !x
  return %y : !x
}

// CHECK-LABEL: func.func @given(
// CHECK: fp8.fusion(%arg0, %arg1)
// CHECK: linalg.generic
// TILES-LABEL: func.func private @given_fusion(
// TILES: scf.forall (%{{.*}}) in (2)
// TILES: tensor.extract_slice %arg1[%{{.*}}, 0] [1, 2]
// TILES: linalg.generic
func.func @given(%x: tensor<256x256xf32>, %s: tensor<2x2xf32>) -> tensor<256x256xf32> {
  %e = tensor.empty() : tensor<256x256xf32>
  %y = linalg.generic {indexing_maps = [#id, #square, #id], iterator_types = ["parallel", "parallel"]} ins(%x, %s : tensor<256x256xf32>, tensor<2x2xf32>) outs(%e : tensor<256x256xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %0 = arith.mulf %a, %b : f32
    linalg.yield %0 : f32
  } -> tensor<256x256xf32>
  return %y : tensor<256x256xf32>
}

// A tensor that has more than an element for each block is no part of a pass.
// CHECK-LABEL: func.func @other_blocks(
// CHECK: fp8.fusion
// CHECK: fp8.yield
// CHECK-NOT: fp8.fusion
// CHECK: linalg.generic
func.func @other_blocks(%x: !x) -> !x {
  %amax = fp8.amax %x block = [1, 128] : !x
  %e = tensor.empty() : !x
  %y = linalg.generic {indexing_maps = [#id, affine_map<(i, j) -> (i, j floordiv 256)>, #id], iterator_types = ["parallel", "parallel"]} ins(%x, %amax : !x, !s) outs(%e : !x) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %0 = arith.mulf %a, %b : f32
    linalg.yield %0 : f32
  } -> !x
  return %y : !x
}
