// RUN: fp8-opt --fp8-set-target=chip=sm_90a --fp8-split-fusions --fp8-select-kernels %s 2>%t | FileCheck %s
// RUN: not grep "no kernel" %t

#id = affine_map<(i, j) -> (i, j)>
#column = affine_map<(i, j) -> (j)>

// The number of rows is known, and so is that of their parts, again and again.

// CHECK-LABEL: func.func @columns
// CHECK-COUNT-3: {fp8_gpu.config = #fp8_fusion.config<
func.func @columns(%x: tensor<819200x?xf32>) -> tensor<1x?xf32> {
  %0 = fp8.fusion(%x) {
  ^bb0(%a: tensor<819200x?xf32>):
    %m = fp8.amax %a block = [*, 1] : tensor<819200x?xf32>
    fp8.yield %m : tensor<1x?xf32>
  } : (tensor<819200x?xf32>) -> tensor<1x?xf32>
  return %0 : tensor<1x?xf32>
}

// Parts of a sum have a size, which becomes an input.

// CHECK-LABEL: func.func @sums
// CHECK-SAME:  %[[X:.+]]: tensor<8192x?xf32>, %[[N:.+]]: index
// CHECK:       %[[COLUMNS:.+]] = tensor.dim %[[X]], %{{.+}}
// CHECK:       fp8.fusion(%[[COLUMNS]], %[[X]]) {
// CHECK:         outs(%{{.+}} : tensor<64x?xf32>)
// CHECK:       {fp8_gpu.config = #fp8_fusion.config<
// CHECK:       fp8.fusion(%[[N]], %{{.+}}) {
// CHECK:         ins(%{{.+}} : tensor<64x?xf32>) outs(%{{.+}} : tensor<?xf32>)
// CHECK:       {fp8_gpu.config = #fp8_fusion.config<
func.func @sums(%x: tensor<8192x?xf32>, %n: index) -> tensor<?xf32> {
  %0 = fp8.fusion(%x, %n) {
  ^bb0(%a: tensor<8192x?xf32>, %k: index):
    %zero = arith.constant 0.0 : f32
    %e = tensor.empty(%k) : tensor<?xf32>
    %z = linalg.fill ins(%zero : f32) outs(%e : tensor<?xf32>) -> tensor<?xf32>
    %1 = linalg.generic {indexing_maps = [#id, #column], iterator_types = ["reduction", "parallel"]} ins(%a : tensor<8192x?xf32>) outs(%z : tensor<?xf32>) {
    ^bb0(%v: f32, %o: f32):
      %2 = arith.addf %o, %v : f32
      linalg.yield %2 : f32
    } -> tensor<?xf32>
    fp8.yield %1 : tensor<?xf32>
  } : (tensor<8192x?xf32>, index) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}
