// RUN: fp8-opt --fp8-set-target=chip=sm_90a --fp8-split-fusions %s 2>/dev/null | FileCheck %s --implicit-check-not="fp8.fusion("
// RUN: fp8-opt --fp8-set-target=chip=sm_90a --fp8-split-fusions --fp8-select-kernels %s 2>%t | FileCheck %s --check-prefix=KERNELS
// RUN: not grep "no kernel" %t

#id = affine_map<(b, i, j) -> (b, i, j)>
#all = affine_map<(b, i, j) -> (j)>
#each = affine_map<(b, i, j) -> (b, j)>
!x = tensor<8x2048x512xf32>

// CHECK-DAG: #[[ID:.+]] = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
// CHECK-DAG: #[[PARTS:.+]] = affine_map<(d0, d1, d2) -> (d0, d1 floordiv 128, d2)>
// CHECK-DAG: #[[ALL:.+]] = affine_map<(d0, d1, d2) -> (d2)>
// CHECK-DAG: #[[EACH:.+]] = affine_map<(d0, d1, d2) -> (d0, d2)>

// Parts are those of a batch, also of a sum over batches and rows.

// CHECK-LABEL: func.func @over_batches
// CHECK:       fp8.fusion(
// CHECK:         linalg.generic {indexing_maps = [#[[ID]], #[[PARTS]]], iterator_types = ["parallel", "reduction", "parallel"]} ins(%{{.+}} : tensor<8x2048x512xf32>) outs(%{{.+}} : tensor<8x16x512xf32>)
// CHECK:       fp8.fusion(
// CHECK:         linalg.generic {indexing_maps = [#[[ID]], #[[ALL]]], iterator_types = ["reduction", "reduction", "parallel"]} ins(%{{.+}} : tensor<8x16x512xf32>)
// CHECK:         fp8.yield %{{.+}} : tensor<512xf32>

// KERNELS-LABEL:   func.func @over_batches
// KERNELS-COUNT-2: {fp8_gpu.config = #fp8_fusion.config<
func.func @over_batches(%x: !x) -> tensor<512xf32> {
  %0 = fp8.fusion(%x) {
  ^bb0(%a: !x):
    %zero = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<512xf32>
    %z = linalg.fill ins(%zero : f32) outs(%e : tensor<512xf32>) -> tensor<512xf32>
    %1 = linalg.generic {indexing_maps = [#id, #all], iterator_types = ["reduction", "reduction", "parallel"]} ins(%a : !x) outs(%z : tensor<512xf32>) {
    ^bb0(%v: f32, %o: f32):
      %2 = arith.addf %o, %v : f32
      linalg.yield %2 : f32
    } -> tensor<512xf32>
    fp8.yield %1 : tensor<512xf32>
  } : (!x) -> tensor<512xf32>
  return %0 : tensor<512xf32>
}

// CHECK-LABEL: func.func @each_batch
// CHECK:       fp8.fusion(
// CHECK:         linalg.generic {indexing_maps = [#[[ID]], #[[PARTS]]], iterator_types = ["parallel", "reduction", "parallel"]} ins(%{{.+}} : tensor<8x2048x512xf32>) outs(%{{.+}} : tensor<8x16x512xf32>)
// CHECK:       fp8.fusion(
// CHECK:         linalg.generic {indexing_maps = [#[[ID]], #[[EACH]]], iterator_types = ["parallel", "reduction", "parallel"]} ins(%{{.+}} : tensor<8x16x512xf32>)
// CHECK:         fp8.yield %{{.+}} : tensor<8x512xf32>

// KERNELS-LABEL:   func.func @each_batch
// KERNELS-COUNT-2: {fp8_gpu.config = #fp8_fusion.config<
func.func @each_batch(%x: !x) -> tensor<8x512xf32> {
  %0 = fp8.fusion(%x) {
  ^bb0(%a: !x):
    %zero = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<8x512xf32>
    %z = linalg.fill ins(%zero : f32) outs(%e : tensor<8x512xf32>) -> tensor<8x512xf32>
    %1 = linalg.generic {indexing_maps = [#id, #each], iterator_types = ["parallel", "reduction", "parallel"]} ins(%a : !x) outs(%z : tensor<8x512xf32>) {
    ^bb0(%v: f32, %o: f32):
      %2 = arith.addf %o, %v : f32
      linalg.yield %2 : f32
    } -> tensor<8x512xf32>
    fp8.yield %1 : tensor<8x512xf32>
  } : (!x) -> tensor<8x512xf32>
  return %0 : tensor<8x512xf32>
}

// CHECK-LABEL: func.func @amaxes
// CHECK:       %[[R:.+]]:2 = fp8.fusion(
// CHECK:         fp8.amax %{{.+}} block = [1, 128, 1] : tensor<8x2048x512xf32>
// CHECK:         fp8.amax %{{.+}} block = [1, 128, 1] : tensor<8x2048x512xf32>
// CHECK:       fp8.fusion(%[[R]]#0) {
// CHECK:         fp8.amax %{{.+}} block = [*, *, 1] : tensor<8x16x512xf32>
// CHECK:         fp8.yield %{{.+}} : tensor<1x1x512xf32>
// CHECK:       fp8.fusion(%[[R]]#1) {
// CHECK:         fp8.amax %{{.+}} block = [1, *, 1] : tensor<8x16x512xf32>
// CHECK:         fp8.yield %{{.+}} : tensor<8x1x512xf32>

// KERNELS-LABEL:   func.func @amaxes
// KERNELS-COUNT-3: {fp8_gpu.config = #fp8_fusion.config<
func.func @amaxes(%x: !x) -> (tensor<1x1x512xf32>, tensor<8x1x512xf32>) {
  %0:2 = fp8.fusion(%x) {
  ^bb0(%a: !x):
    %1 = fp8.amax %a block = [*, *, 1] : !x
    %2 = fp8.amax %a block = [1, *, 1] : !x
    fp8.yield %1, %2 : tensor<1x1x512xf32>, tensor<8x1x512xf32>
  } : (!x) -> (tensor<1x1x512xf32>, tensor<8x1x512xf32>)
  return %0#0, %0#1 : tensor<1x1x512xf32>, tensor<8x1x512xf32>
}

// Rows of all batches lie below each other where nothing tells them apart; a
// copy of each in the other order does. Two passes.

// CHECK-LABEL: func.func @apart
// CHECK-SAME:  %[[X:.+]]: tensor<4x32x512xf32>, %[[S:.+]]: tensor<1x1x1xf32>
// CHECK:       %[[T:.+]] = fp8.fusion(%[[X]], %[[S]]) {
// CHECK:         fp8.transpose
// CHECK:       %[[M:.+]] = fp8.fusion(%[[X]]) {
// CHECK:         fp8.amax %{{.+}} block = [*, *, 1] : tensor<4x32x512xf32>
// CHECK:       return %[[T]], %[[M]]

// KERNELS-LABEL:   func.func @apart
// KERNELS-COUNT-2: {fp8_gpu.config = #fp8_fusion.config<
func.func @apart(%x: tensor<4x32x512xf32>, %s: tensor<1x1x1xf32>) -> (tensor<4x512x32xf8E4M3FN>, tensor<1x1x512xf32>) {
  %0:2 = fp8.fusion(%x, %s) {
  ^bb0(%a: tensor<4x32x512xf32>, %b: tensor<1x1x1xf32>):
    %q = fp8.quantize %a scale(%b, %b : tensor<1x1x1xf32>, tensor<1x1x1xf32>) : tensor<4x32x512xf32> -> !fp8.scaled<4x32x512xf8E4M3FN, block = [*, *, *], scale = f32>
    %t = fp8.transpose %q permutation = [0, 2, 1] : !fp8.scaled<4x32x512xf8E4M3FN, block = [*, *, *], scale = f32>
    %c, %f = fp8.disassemble %t : !fp8.scaled<4x512x32xf8E4M3FN, block = [*, *, *], scale = f32>
    %m = fp8.amax %a block = [*, *, 1] : tensor<4x32x512xf32>
    fp8.yield %c, %m : tensor<4x512x32xf8E4M3FN>, tensor<1x1x512xf32>
  } : (tensor<4x32x512xf32>, tensor<1x1x1xf32>) -> (tensor<4x512x32xf8E4M3FN>, tensor<1x1x512xf32>)
  return %0#0, %0#1 : tensor<4x512x32xf8E4M3FN>, tensor<1x1x512xf32>
}
