// RUN: fp8-opt %s --fp8-decode-operands=chip=sm_90a | FileCheck %s

// One of a group is multiplied in bf16, the other one has no kernel even so: they have no A in common, and are no group.

!a = !fp8.scaled<1x?xf4E2M1FN, block = [1, 16], scale = f8E4M3FN, tensor_scale = f32>
!b = !fp8.scaled<?x129xf4E2M1FN, block = [16, 1], scale = f8E4M3FN, tensor_scale = f32>
!c = !fp8.scaled<129x?xf4E2M1FN, block = [1, 16], scale = f8E4M3FN, tensor_scale = f32>

// CHECK-LABEL: func.func @siblings
// CHECK-NOT: fp8.sibling_matmuls
// CHECK: %[[FIRST:.*]] = fp8.matmul %arg0, %arg1 transpose_b
// CHECK: %[[SECOND:.*]] = fp8.matmul {{.*}} epilogue(
// CHECK: : tensor<1x?xbf16>, tensor<129x?xbf16> -> tensor<1x129xf32>
// CHECK: return %[[FIRST]], %[[SECOND]]
func.func @siblings(%a: !a, %b: !b, %c: !c) -> (tensor<1x129xf32>, tensor<1x129xf32>) {
  %0:2 = fp8.sibling_matmuls {
    %1 = fp8.matmul %a, %b transpose_b : !a, !b -> tensor<1x129xf32>
    %2 = fp8.matmul %a, %c : !a, !c -> tensor<1x129xf32>
    fp8.yield %1, %2 : tensor<1x129xf32>, tensor<1x129xf32>
  } : tensor<1x129xf32>, tensor<1x129xf32>
  return %0#0, %0#1 : tensor<1x129xf32>, tensor<1x129xf32>
}
