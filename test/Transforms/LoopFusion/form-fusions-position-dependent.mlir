// RUN: fp8-opt %s --fp8-form-fusions=position-dependent | FileCheck %s
// RUN: fp8-opt %s --fp8-form-fusions | FileCheck %s --check-prefix=TILES
// RUN: fp8-opt %s --fp8-form-fusions=position-dependent --fp8-tile-fusions | FileCheck %s --check-prefix=WHOLE

!x = tensor<32x48xbf16>
!t = tensor<48x32xbf16>
!one = tensor<1x1xf32>
!seed = tensor<4xi32>
!s = tensor<48x2xf32>
!si = tensor<48x2xf8E4M3FN>
!q = !fp8.scaled<48x32xf4E2M1FN, block = [1, 16], scale = f8E4M3FN, tensor_scale = f32>
!r = !fp8.scaled<32x48xf4E2M1FN, block = [1, 16], scale = f8E4M3FN, tensor_scale = f32>

// Without the option what goes by places is in no fusion, and so it is not in the
// tiles of one.

// CHECK-LABEL: func.func @seed
// CHECK:       fp8.fusion(%{{.+}}, %{{.+}}, %[[SEED:.+]])
// CHECK:       ^bb0({{.+}}: tensor<32x48xbf16>, {{.+}}, %[[WORDS:.+]]: tensor<4xi32>):
// CHECK:         fp8.amax
// CHECK:         fp8.compute_scale
// CHECK:         fp8.quantize {{.+}} seed(%[[WORDS]] : tensor<4xi32>)
// CHECK:         fp8.yield
// TILES-LABEL: func.func @seed
// TILES:         fp8.yield
// TILES:       fp8.quantize
// WHOLE-LABEL: func.func @seed
// WHOLE:       fp8.fusion
// WHOLE:         fp8.quantize
func.func @seed(%x: !x, %all: !one, %seed: !seed) -> !r {
  %a = fp8.amax %x block = [1, 16] : !x
  %s, %si, %ts = fp8.compute_scale %a tensor_amax(%all : !one) format = f4E2M1FN scale_type = f8E4M3FN : tensor<32x3xf32>
  %q = fp8.quantize %x scale(%s, %si : tensor<32x3xf32>, tensor<32x3xf8E4M3FN>) tensor_scale_inv(%ts : !one)
      seed(%seed : !seed) : !x -> !r
  return %q : !r
}

// A pass measures what was rotated, and the next one rotates again: nothing is
// transposed, and nothing that was rotated is written, in high precision.

// CHECK-LABEL: func.func @rotated_columns(
// CHECK-SAME:  %[[X:.+]]: tensor<32x48xbf16>, %[[S:.+]]: tensor<4xi32>)
// CHECK-NOT:   linalg.transpose
// CHECK:       %[[A:.+]]:2 = fp8.fusion(%[[X]]) {
// CHECK-NEXT:  ^bb0(%[[IN:.+]]: tensor<32x48xbf16>):
// CHECK:         %[[T:.+]] = linalg.transpose ins(%[[IN]]
// CHECK-NEXT:    %[[Y:.+]] = fp8.hadamard %[[T]] signs = 55272
// CHECK-NEXT:    %[[BLOCKS:.+]] = fp8.amax %[[Y]] block = [1, 16]
// CHECK-NEXT:    %[[ALL:.+]] = fp8.amax %[[BLOCKS]] block = [*, *]
// CHECK-NEXT:    fp8.yield %[[BLOCKS]], %[[ALL]]
// CHECK:       fp8.compute_scale %[[A]]#0 tensor_amax(%[[A]]#1
// CHECK:       %[[C:.+]] = fp8.fusion(%[[X]], {{.+}}, %[[S]]) {
// CHECK-NEXT:  ^bb0(%[[IN:.+]]: tensor<32x48xbf16>,
// CHECK:         %[[T:.+]] = linalg.transpose ins(%[[IN]]
// CHECK-NEXT:    %[[Y:.+]] = fp8.hadamard %[[T]] signs = 55272
// CHECK-NEXT:    fp8.quantize %[[Y]]
// CHECK:         fp8.yield
// CHECK:       (tensor<32x48xbf16>, {{.+}}) -> tensor<48x32xf4E2M1FN>
// TILES-LABEL: func.func @rotated_columns(
// TILES:       linalg.transpose
// TILES-NEXT:  %[[Y:.+]] = fp8.hadamard
// TILES:       fp8.fusion(%[[Y]])
func.func @rotated_columns(%x: !x, %seed: !seed) -> !q {
  %e = tensor.empty() : !t
  %t = linalg.transpose ins(%x : !x) outs(%e : !t) permutation = [1, 0]
  %y = fp8.hadamard %t signs = 55272 : !t
  %a = fp8.amax %y block = [1, 16] : !t
  %all = fp8.amax %a block = [*, *] : !s
  %s, %si, %ts = fp8.compute_scale %a tensor_amax(%all : !one) format = f4E2M1FN scale_type = f8E4M3FN : !s
  %q = fp8.quantize %y scale(%s, %si : !s, !si) tensor_scale_inv(%ts : !one) seed(%seed : !seed) : !t -> !q
  return %q : !q
}

// Somebody else needs the rotated tensor: one pass writes it.

// CHECK-LABEL: func.func @written(
// CHECK:       %[[R:.+]]:2 = fp8.fusion
// CHECK:         %[[Y:.+]] = fp8.hadamard
// CHECK:         fp8.yield %[[Y]],
// CHECK:       return %[[R]]#0
func.func @written(%x: !x) -> (!x, tensor<32x3xf32>) {
  %y = fp8.hadamard %x signs = 1 : !x
  %a = fp8.amax %y block = [1, 16] : !x
  return %y, %a : !x, tensor<32x3xf32>
}

// What has been transposed for others is read as it lies.

// CHECK-LABEL: func.func @transposed_for_others(
// CHECK:       %[[T:.+]] = linalg.transpose
// CHECK:       fp8.fusion(%[[T]])
// CHECK-NEXT:  ^bb0(%[[IN:.+]]: tensor<48x32xbf16>):
// CHECK-NEXT:    fp8.hadamard %[[IN]]
func.func @transposed_for_others(%x: !x) -> (!t, !s) {
  %e = tensor.empty() : !t
  %t = linalg.transpose ins(%x : !x) outs(%e : !t) permutation = [1, 0]
  %y = fp8.hadamard %t signs = 1 : !t
  %a = fp8.amax %y block = [1, 16] : !t
  return %t, %a : !t, !s
}

// Passes are over three dimensions, of which the last two change places.

// CHECK-LABEL: func.func @batches_moved(
// CHECK:       %[[T:.+]] = linalg.transpose
// CHECK:       fp8.fusion(%[[T]])
// CHECK-NEXT:  ^bb0(%[[IN:.+]]: tensor<2x3x16xbf16>):
// CHECK-NEXT:    fp8.hadamard %[[IN]]
func.func @batches_moved(%x: tensor<16x2x3xbf16>) -> tensor<2x3x1xf32> {
  %e = tensor.empty() : tensor<2x3x16xbf16>
  %t = linalg.transpose ins(%x : tensor<16x2x3xbf16>) outs(%e : tensor<2x3x16xbf16>) permutation = [1, 2, 0]
  %y = fp8.hadamard %t signs = 1 : tensor<2x3x16xbf16>
  %a = fp8.amax %y block = [1, 1, 16] : tensor<2x3x16xbf16>
  return %a : tensor<2x3x1xf32>
}
