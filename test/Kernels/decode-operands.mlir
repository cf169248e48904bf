// RUN: fp8-opt --fp8-decode-operands=chip=sm_90a %s 2>&1 | FileCheck %s
// RUN: fp8-opt --fp8-decode-operands=chip=sm_100a %s 2>&1 | FileCheck %s --check-prefix=BLACKWELL
// RUN: not fp8-opt --fp8-decode-operands=chip=sm_70 %s 2>&1 | FileCheck %s --check-prefix=CHIP

// CHIP: error: expected chip to be one of sm_90a, sm_100a, sm_89, sm_120a, sm_121a, sm_80, but got 'sm_70'
// CHECK: remark: multiplied in bf16, which the tensor core multiplies, and not as '!fp8.scaled<8192x4096xf8E4M3FN, block = [1, 32], scale = f8E8M0FNU>' and
// CHECK: remark: multiplied as '!fp8.scaled<64x128xf8E4M3FN, block = [1, 32], scale = f8E8M0FNU>' and '!fp8.scaled<96x128xf8E4M3FN, block = [1, 32], scale = f8E8M0FNU>', each sum of 32 by its factors: in bf16 it is expected to take {{[0-9.]+}} times as long

!a8 = !fp8.scaled<64x128xf8E4M3FN, block = [1, 32], scale = f8E8M0FNU>
!b8 = !fp8.scaled<96x128xf8E4M3FN, block = [1, 32], scale = f8E8M0FNU>
!many = !fp8.scaled<8192x4096xf8E4M3FN, block = [1, 32], scale = f8E8M0FNU>
!large = !fp8.scaled<4096x4096xf8E4M3FN, block = [1, 32], scale = f8E8M0FNU>

// Blackwell has a kernel for them. What two products read is decoded once.
// CHECK-LABEL: func.func @mxfp8
// CHECK-SAME: %[[A:.*]]: !fp8.scaled<8192x{{.*}}>, %[[B:.*]]: !fp8.scaled<4096x{{.*}}>, %[[C:.*]]: !fp8.scaled<4096x
// CHECK-DAG: %[[X:.*]] = fp8.dequantize %[[A]] : <8192x4096xf8E4M3FN, block = [1, 32], scale = f8E8M0FNU> -> tensor<8192x4096xbf16>
// CHECK-DAG: %[[Y:.*]] = fp8.dequantize %[[B]]
// CHECK-DAG: %[[Z:.*]] = fp8.dequantize %[[C]]
// CHECK-NOT: fp8.dequantize
// CHECK: fp8.matmul %[[X]], %[[Y]] accumulate = fast {fp8.name = "y"} : tensor<8192x4096xbf16>, tensor<4096x4096xbf16> -> tensor<8192x4096xbf16>
// CHECK: fp8.matmul %[[X]], %[[Z]] accumulate = fast
// BLACKWELL-LABEL: func.func @mxfp8
// BLACKWELL-NOT: fp8.dequantize
// BLACKWELL: return
func.func @mxfp8(%a: !many, %b: !large, %c: !large) -> (tensor<8192x4096xbf16>, tensor<8192x4096xf32>) {
  %0 = fp8.matmul %a, %b {fp8.name = "y"} : !many, !large -> tensor<8192x4096xbf16>
  %1 = fp8.matmul %a, %c : !many, !large -> tensor<8192x4096xf32>
  return %0, %1 : tensor<8192x4096xbf16>, tensor<8192x4096xf32>
}

// Few rows are multiplied in FP8, by a kernel that multiplies sums of 32.
// CHECK-LABEL: func.func @few_rows
// CHECK-NOT: fp8.dequantize
// CHECK: fp8.matmul %{{.*}}, %{{.*}} : !fp8.scaled<64x128x
// CHECK: return
func.func @few_rows(%a: !a8, %b: !b8) -> tensor<64x96xbf16> {
  %0 = fp8.matmul %a, %b : !a8, !b8 -> tensor<64x96xbf16>
  return %0 : tensor<64x96xbf16>
}

// But for those whose bits may not depend on how many they are; and that kernel
// wants a word of factors.
!k96 = !fp8.scaled<64x96xf8E4M3FN, block = [1, 32], scale = f8E8M0FNU>
// CHECK-LABEL: func.func @few_rows_in_bf16
// CHECK: fp8.matmul {{.*}} : tensor<64x128xbf16>, tensor<96x128xbf16>
// CHECK: fp8.matmul {{.*}} : tensor<64x96xbf16>, tensor<64x96xbf16>
func.func @few_rows_in_bf16(%a: !a8, %b: !b8, %c: !k96) -> (tensor<64x96xbf16>, tensor<64x64xbf16>) {
  %0 = fp8.matmul %a, %b {fp8.invariant} : !a8, !b8 -> tensor<64x96xbf16>
  %1 = fp8.matmul %c, %c : !k96, !k96 -> tensor<64x64xbf16>
  return %0, %1 : tensor<64x96xbf16>, tensor<64x64xbf16>
}

// Factors of tensors multiply the sum, before the epilogue: A's by B's first.
!a4 = !fp8.scaled<64x128xf4E2M1FN, block = [1, 16], scale = f8E4M3FN, tensor_scale = f32>
!b4 = !fp8.scaled<96x128xf4E2M1FN, block = [1, 16], scale = f8E4M3FN, tensor_scale = f32>
// CHECK-LABEL: func.func @nvfp4
// CHECK-SAME: %[[A:.*]]: !fp8.scaled<64x{{.*}}>, %[[B:.*]]: !fp8.scaled<96x
// CHECK: %[[ONE:.*]] = arith.constant dense<1.000000e+00> : tensor<1x1xf32>
// CHECK: fp8.assemble %{{.*}}, %{{.*}}, %[[ONE]] : tensor<96x128xf4E2M1FN>
// CHECK: fp8.matmul %{{.*}}, %{{.*}} accumulate = fast epilogue(%[[BIAS:.*]], %[[SA:.*]], %[[SB:.*]] : tensor<96xf32>, tensor<1x1xf32>, tensor<1x1xf32>)
// CHECK-NEXT: ^bb0(%[[SUM:.*]]: f32, %[[OF_BIAS:.*]]: f32, %[[OF_A:.*]]: f32, %[[OF_B:.*]]: f32):
// CHECK-NEXT: %[[FACTOR:.*]] = arith.mulf %[[OF_A]], %[[OF_B]]
// CHECK-NEXT: %[[SCALED:.*]] = arith.mulf %[[SUM]], %[[FACTOR]]
// CHECK-NEXT: %[[ADDED:.*]] = arith.addf %[[SCALED]], %[[OF_BIAS]]
// CHECK-NEXT: arith.truncf %[[ADDED]] : f32 to bf16
func.func @nvfp4(%a: !a4, %b: !b4, %bias: tensor<96xf32>) -> tensor<64x96xbf16> {
  %0 = fp8.matmul %a, %b epilogue(%bias : tensor<96xf32>) {
  ^bb0(%sum: f32, %of: f32):
    %1 = arith.addf %sum, %of : f32
    %2 = arith.truncf %1 : f32 to bf16
    fp8.yield %2 : bf16
  } : !a4, !b4 -> tensor<64x96xbf16>
  return %0 : tensor<64x96xbf16>
}

// Without an epilogue there is one then.
// CHECK-LABEL: func.func @no_epilogue
// CHECK: arith.mulf %[[SUM:.*]], %{{.*}} : f32
// CHECK: arith.mulf
// CHECK-NEXT: %[[R:.*]] = arith.truncf
// CHECK-NEXT: fp8.yield %[[R]] : f16
func.func @no_epilogue(%a: !a4, %b: !b4) -> tensor<64x96xf16> {
  %0 = fp8.matmul %a, %b : !a4, !b4 -> tensor<64x96xf16>
  return %0 : tensor<64x96xf16>
}

// Tiles of weights, and no transposed copy of what bf16 is read of in either order.
!t = !fp8.scaled<128x96xf8E4M3FN, block = [32, 32], scale = f8E8M0FNU>
!tt = !fp8.scaled<96x128xf8E4M3FN, block = [32, 32], scale = f8E8M0FNU>
// CHECK-LABEL: func.func @transposed
// CHECK: %[[W:.*]] = fp8.dequantize %{{.*}} : <128x96xf8E4M3FN
// CHECK: fp8.matmul %{{.*}}, %[[W]] transpose_b accumulate = fast
func.func @transposed(%a: !a8, %b: !t) -> tensor<64x96xbf16> {
  %w = fp8.transpose %b permutation = [1, 0] : !t
  %0 = fp8.matmul %a, %w : !a8, !tt -> tensor<64x96xbf16>
  return %0 : tensor<64x96xbf16>
}

// Groups of rows want K innermost in A.
!k = !fp8.scaled<128x64xf8E4M3FN, block = [32, 1], scale = f8E8M0FNU>
!g4 = !fp8.scaled<5x96x128xf4E2M1FN, block = [1, 1, 16], scale = f8E4M3FN, tensor_scale = f32>
!g8 = !fp8.scaled<5x96x128xf8E4M3FN, block = [1, 1, 32], scale = f8E8M0FNU>
// CHECK-LABEL: func.func @groups
// CHECK-DAG: tensor.collapse_shape %{{.*}} {{\[\[}}0, 1], [2]] : tensor<1x1x1xf32> into tensor<1x1xf32>
// CHECK-DAG: %[[T:.*]] = fp8.transpose
// CHECK-DAG: %[[X:.*]] = fp8.dequantize %[[T]] : <64x128x
// CHECK: fp8.grouped_matmul %[[X]], %{{.*}} offsets(%{{.*}} : tensor<6xi32>) accumulate = fast {fp8.invariant} : tensor<64x128xbf16>, tensor<5x96x128xbf16>
// CHECK: fp8.grouped_matmul {{.*}} epilogue(%{{.*}}, %{{.*}} : tensor<1x1xf32>, tensor<1x1xf32>)
func.func @groups(%a: !k, %w: !g8, %o: tensor<6xi32>, %b: !a4, %v: !g4) -> (tensor<64x96xbf16>, tensor<64x96xbf16>) {
  %t = fp8.transpose %a permutation = [1, 0] : !k
  %0 = fp8.grouped_matmul %t, %w offsets(%o : tensor<6xi32>) {fp8.invariant} : !a8, !g8 -> tensor<64x96xbf16>
  %1 = fp8.grouped_matmul %b, %v offsets(%o : tensor<6xi32>) : !a4, !g4 -> tensor<64x96xbf16>
  return %0, %1 : tensor<64x96xbf16>, tensor<64x96xbf16>
}

// An f32 is no power of two that is known, and these are multiplied as they are.
!f = !fp8.scaled<64x128xf8E4M3FN, block = [1, 32], scale = f32>
!r = !fp8.scaled<64x128xf8E4M3FN, block = [1, *], scale = f32>
// CHECK-LABEL: func.func @others
// CHECK-NOT: fp8.dequantize
// CHECK: return
func.func @others(%a: !f, %b: !f, %c: !r, %d: !r) -> (tensor<64x64xbf16>, tensor<64x64xbf16>) {
  %0 = fp8.matmul %a, %b : !f, !f -> tensor<64x64xbf16>
  %1 = fp8.matmul %c, %d : !r, !r -> tensor<64x64xbf16>
  return %0, %1 : tensor<64x64xbf16>, tensor<64x64xbf16>
}
