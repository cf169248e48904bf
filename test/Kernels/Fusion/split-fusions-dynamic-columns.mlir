// RUN: fp8-opt --fp8-set-target=chip=sm_90a --fp8-split-fusions --fp8-select-kernels %s 2>%t | FileCheck %s
// RUN: not grep "no kernel" %t

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
