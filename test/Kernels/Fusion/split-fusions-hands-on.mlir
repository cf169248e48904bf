// RUN: fp8-opt --fp8-set-target=chip=sm_90a --fp8-split-fusions --fp8-select-kernels %s 2>%t | FileCheck %s
#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
#column = affine_map<(i, j) -> (j)>
!x = tensor<32x64xf32>

// What is only handed on is computed by nobody (select-kernels-unsupported.mlir
// has the same fusion): the rest keeps its kernel.

// CHECK-LABEL: func.func @hands_on
// CHECK-SAME:  %[[X:.+]]: tensor<32x64xf32>
// CHECK:         fp8.yield %{{.+}} : tensor<1x1xf32>
// CHECK-NEXT:  } {fp8_gpu.config = #fp8_fusion.config<
func.func @hands_on(%x: !x) -> (!x, tensor<1x1xf32>) {
  %0:2 = fp8.fusion(%x) {
  ^bb0(%a: !x):
    %m = fp8.amax %a block = [*, *] : !x
    fp8.yield %a, %m : !x, tensor<1x1xf32>
  } : (!x) -> (!x, tensor<1x1xf32>)
  return %0#0, %0#1 : !x, tensor<1x1xf32>
}
