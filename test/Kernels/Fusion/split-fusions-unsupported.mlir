// RUN: fp8-opt --fp8-set-target=chip=sm_90a --fp8-split-fusions %s 2>/dev/null | FileCheck %s --implicit-check-not="fp8.fusion("
// RUN: fp8-opt --fp8-set-target=chip=sm_90a --fp8-split-fusions --fp8-select-kernels %s 2>/dev/null | FileCheck %s --check-prefix=KERNELS --implicit-check-not=fp8_gpu.config

#id = affine_map<(i, j) -> (i, j)>
#turned = affine_map<(i, j) -> (j, i)>
#column = affine_map<(i, j) -> (j)>
!x = tensor<32x64xbf16>
!f = tensor<512x4096xf32>
!one = tensor<1x1xf32>

//===----------------------------------------------------------------------===//
// What stays as it is
//===----------------------------------------------------------------------===//

// A tile has 512 rows.

// CHECK-LABEL: func.func @few_rows
// CHECK:       %[[R:.+]]:2 = fp8.fusion(
// CHECK:         linalg.generic {{.+}} iterator_types = ["reduction", "parallel"]
// CHECK:         linalg.generic {{.+}} iterator_types = ["parallel", "parallel"]
// CHECK:         fp8.yield %{{.+}}, %{{.+}} : tensor<4096xf32>, tensor<512x4096xf32>
// CHECK:       return %[[R]]#0, %[[R]]#1

// KERNELS-LABEL: func.func @few_rows
// KERNELS:       {fp8_gpu.config = #fp8_fusion.config<
func.func @few_rows(%x: !f) -> (tensor<4096xf32>, !f) {
  %0:2 = fp8.fusion(%x) {
  ^bb0(%a: !f):
    %zero = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<4096xf32>
    %z = linalg.fill ins(%zero : f32) outs(%e : tensor<4096xf32>) -> tensor<4096xf32>
    %1 = linalg.generic {indexing_maps = [#id, #column], iterator_types = ["reduction", "parallel"]} ins(%a : !f) outs(%z : tensor<4096xf32>) {
    ^bb0(%v: f32, %o: f32):
      %3 = arith.addf %o, %v : f32
      linalg.yield %3 : f32
    } -> tensor<4096xf32>
    %f = tensor.empty() : !f
    %2 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%a : !f) outs(%f : !f) {
    ^bb0(%v: f32, %o: f32):
      %3 = arith.negf %v : f32
      linalg.yield %3 : f32
    } -> !f
    fp8.yield %1, %2 : tensor<4096xf32>, !f
  } : (!f) -> (tensor<4096xf32>, !f)
  return %0#0, %0#1 : tensor<4096xf32>, !f
}

// Rows of a softmax that a cluster holds are read once.

// CHECK-LABEL: func.func @short_rows
// CHECK:       fp8.fusion(
// CHECK:         fp8.amax
// CHECK:         fp8.quantize

// KERNELS-LABEL: func.func @short_rows
// KERNELS:       {fp8_gpu.config = #fp8_fusion.config<
!q = !fp8.scaled<32x64xf8E4M3FN, block = [1, *], scale = f32>
func.func @short_rows(%x: !x) -> tensor<32x64xf8E4M3FN> {
  %0 = fp8.fusion(%x) {
  ^bb0(%a: !x):
    %m = fp8.amax %a block = [1, *] : !x
    %s, %si = fp8.compute_scale %m format = f8E4M3FN scale_type = f32 : tensor<32x1xf32>
    %q = fp8.quantize %a scale(%s, %si : tensor<32x1xf32>, tensor<32x1xf32>) : !x -> !q
    %c, %f = fp8.disassemble %q : !q
    fp8.yield %c : tensor<32x64xf8E4M3FN>
  } : (!x) -> tensor<32x64xf8E4M3FN>
  return %0 : tensor<32x64xf8E4M3FN>
}

// Nothing of it has a kernel.

// CHECK-LABEL: func.func @nothing
// CHECK-SAME:  %[[X:.+]]: tensor<32x64xbf16>
// CHECK-NEXT:  %[[R:.+]]:2 = fp8.fusion(%[[X]]) {
// CHECK-NEXT:  ^bb0(%[[A:.+]]: tensor<32x64xbf16>):
// CHECK-NEXT:    %[[C:.+]] = tensor.collapse_shape %[[A]]
// CHECK-NEXT:    %[[E:.+]] = tensor.empty() : tensor<32x64xi1>
// CHECK-NEXT:    %[[MASK:.+]] = linalg.generic
// CHECK:         fp8.yield %[[C]], %[[MASK]] : tensor<2048xbf16>, tensor<32x64xi1>
// CHECK-NEXT:  }
// CHECK-NEXT:  return %[[R]]#0, %[[R]]#1

// KERNELS-LABEL: func.func @nothing
func.func @nothing(%x: !x) -> (tensor<2048xbf16>, tensor<32x64xi1>) {
  %0:2 = fp8.fusion(%x) {
  ^bb0(%a: !x):
    %1 = tensor.collapse_shape %a [[0, 1]] : !x into tensor<2048xbf16>
    %e = tensor.empty() : tensor<32x64xi1>
    %2 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%a : !x) outs(%e : tensor<32x64xi1>) {
    ^bb0(%v: bf16, %o: i1):
      %3 = arith.cmpf ogt, %v, %v : bf16
      linalg.yield %3 : i1
    } -> tensor<32x64xi1>
    fp8.yield %1, %2 : tensor<2048xbf16>, tensor<32x64xi1>
  } : (!x) -> (tensor<2048xbf16>, tensor<32x64xi1>)
  return %0#0, %0#1 : tensor<2048xbf16>, tensor<32x64xi1>
}

//===----------------------------------------------------------------------===//
// What leaves the others
//===----------------------------------------------------------------------===//

// No kernel writes numbers in another order; the others keep one kernel.

// CHECK-LABEL: func.func @transposed
// CHECK-SAME:  %[[X:.+]]: tensor<32x64xbf16>
// CHECK-NEXT:  %[[R:.+]]:2 = fp8.fusion(%[[X]]) {
// CHECK:           arith.addf
// CHECK:         fp8.amax
// CHECK-NOT:       arith.negf
// CHECK:         fp8.yield %{{.+}}, %{{.+}} : tensor<32x64xbf16>, tensor<1x1xf32>
// CHECK:       %[[T:.+]] = fp8.fusion(%[[X]]) {
// CHECK:           arith.negf
// CHECK:         fp8.yield %{{.+}} : tensor<64x32xbf16>
// CHECK:       return %[[R]]#0, %[[T]], %[[R]]#1

// KERNELS-LABEL: func.func @transposed
// KERNELS:         fp8.yield %{{.+}}, %{{.+}} : tensor<32x64xbf16>, tensor<1x1xf32>
// KERNELS-NEXT:  } {fp8_gpu.config = #fp8_fusion.config<
// KERNELS:         fp8.yield %{{.+}} : tensor<64x32xbf16>
// KERNELS-NEXT:  } :
func.func @transposed(%x: !x) -> (!x, tensor<64x32xbf16>, !one) {
  %0:3 = fp8.fusion(%x) {
  ^bb0(%a: !x):
    %e = tensor.empty() : tensor<64x32xbf16>
    %1 = linalg.generic {indexing_maps = [#id, #turned], iterator_types = ["parallel", "parallel"]} ins(%a : !x) outs(%e : tensor<64x32xbf16>) {
    ^bb0(%v: bf16, %o: bf16):
      %3 = arith.negf %v : bf16
      linalg.yield %3 : bf16
    } -> tensor<64x32xbf16>
    %f = tensor.empty() : !x
    %2 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%a : !x) outs(%f : !x) {
    ^bb0(%v: bf16, %o: bf16):
      %3 = arith.addf %v, %v : bf16
      linalg.yield %3 : bf16
    } -> !x
    %m = fp8.amax %a block = [*, *] : !x
    fp8.yield %2, %1, %m : !x, tensor<64x32xbf16>, !one
  } : (!x) -> (!x, tensor<64x32xbf16>, !one)
  return %0#0, %0#1, %0#2 : !x, tensor<64x32xbf16>, !one
}

// So do those beside what is no arithmetic on elements.

// CHECK-LABEL: func.func @not_elementwise
// CHECK:       %[[M:.+]] = fp8.fusion(
// CHECK-NOT:     tensor.collapse_shape
// CHECK:         fp8.yield %{{.+}} : tensor<1x1xf32>
// CHECK:       %[[C:.+]] = fp8.fusion(
// CHECK-NOT:     fp8.amax
// CHECK:         fp8.yield %{{.+}} : tensor<2048xbf16>
// CHECK:       return %[[C]], %[[M]]

// KERNELS-LABEL: func.func @not_elementwise
// KERNELS:         fp8.yield %{{.+}} : tensor<1x1xf32>
// KERNELS-NEXT:  } {fp8_gpu.config = #fp8_fusion.config<
func.func @not_elementwise(%x: !x) -> (tensor<2048xbf16>, !one) {
  %0:2 = fp8.fusion(%x) {
  ^bb0(%a: !x):
    %1 = tensor.collapse_shape %a [[0, 1]] : !x into tensor<2048xbf16>
    %2 = fp8.amax %a block = [*, *] : !x
    fp8.yield %1, %2 : tensor<2048xbf16>, !one
  } : (!x) -> (tensor<2048xbf16>, !one)
  return %0#0, %0#1 : tensor<2048xbf16>, !one
}

// Two domains are two passes.

// CHECK-LABEL: func.func @two_domains
// CHECK-SAME:  %[[X:.+]]: tensor<32x64xbf16>, %[[Y:.+]]: tensor<16x16xbf16>
// CHECK-NEXT:  %[[A:.+]] = fp8.fusion(%[[X]]) {
// CHECK:       %[[B:.+]] = fp8.fusion(%[[Y]]) {
// CHECK:       return %[[A]], %[[B]]

// KERNELS-LABEL:   func.func @two_domains
// KERNELS-COUNT-2: {fp8_gpu.config = #fp8_fusion.config<
func.func @two_domains(%x: !x, %y: tensor<16x16xbf16>) -> (!one, !one) {
  %0:2 = fp8.fusion(%x, %y) {
  ^bb0(%a: !x, %b: tensor<16x16xbf16>):
    %1 = fp8.amax %a block = [*, *] : !x
    %2 = fp8.amax %b block = [*, *] : tensor<16x16xbf16>
    fp8.yield %1, %2 : !one, !one
  } : (!x, tensor<16x16xbf16>) -> (!one, !one)
  return %0#0, %0#1 : !one, !one
}
