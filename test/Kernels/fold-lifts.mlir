// RUN: fp8-opt --fp8-fold-lifts=chip=sm_90a %s 2>&1 | FileCheck %s
// RUN: fp8-opt --fp8-fold-lifts=chip=sm_100a %s 2>&1 | FileCheck %s --check-prefix=BLACKWELL
// RUN: not fp8-opt --fp8-fold-lifts=chip=sm_80 %s 2>&1 | FileCheck %s --check-prefix=CHIP

// CHIP: error: expected chip to be one of sm_90a, sm_100a, but got 'sm_80'
// BLACKWELL-COUNT-3: remark: weights are lifted in memory: no kernel reads them packed for each matmul of them
// BLACKWELL-NOT: folded

!x = !fp8.scaled<64x256xf8E4M3FN, block = [1, *], scale = f32>
!w = !fp8.scaled<128x256xf8E4M3FN, block = [1, *], scale = f32>

// Two products of one weight.
// CHECK-LABEL: func.func @matmuls
// CHECK: fp8.lift %{{.*}}, %{{.*}} folded : tensor<128x256xf4E2M1FN>
func.func @matmuls(%a: !x, %b: !x, %p: tensor<128x256xf4E2M1FN>, %e: tensor<2x128xi32>, %s: tensor<128x1xf32>)
    -> (tensor<64x128xbf16>, tensor<64x128xf32>) {
  %l = fp8.lift %p, %e : tensor<128x256xf4E2M1FN>, tensor<2x128xi32> -> tensor<128x256xf8E4M3FN>
  %w = fp8.assemble %l, %s : tensor<128x256xf8E4M3FN>, tensor<128x1xf32> -> !w
  %0 = fp8.matmul %a, %w : !x, !w -> tensor<64x128xbf16>
  %1 = fp8.matmul %b, %w accumulate = fast : !x, !w -> tensor<64x128xf32>
  return %0, %1 : tensor<64x128xbf16>, tensor<64x128xf32>
}

// CHECK-LABEL: func.func @groups
// CHECK: fp8.lift %{{.*}}, %{{.*}} folded : tensor<5x128x256xf4E2M1FN>
!g = !fp8.scaled<5x128x256xf8E4M3FN, block = [1, 1, *], scale = f32>
func.func @groups(%a: !x, %o: tensor<6xi32>, %p: tensor<5x128x256xf4E2M1FN>, %e: tensor<5x2x128xi32>, %s: tensor<5x128x1xf32>)
    -> tensor<64x128xbf16> {
  %l = fp8.lift %p, %e : tensor<5x128x256xf4E2M1FN>, tensor<5x2x128xi32> -> tensor<5x128x256xf8E4M3FN>
  %w = fp8.assemble %l, %s : tensor<5x128x256xf8E4M3FN>, tensor<5x128x1xf32> -> !g
  %0 = fp8.grouped_matmul %a, %w offsets(%o : tensor<6xi32>) : !x, !g -> tensor<64x128xbf16>
  return %0 : tensor<64x128xbf16>
}

// Something else reads them; they are no B; they are neither.
// CHECK-LABEL: func.func @others
// CHECK-NOT: folded
// CHECK: return
func.func @others(%a: !w, %p: tensor<128x256xf4E2M1FN>, %e: tensor<2x128xi32>, %s: tensor<128x1xf32>)
    -> (tensor<128x256xf8E4M3FN>, tensor<128x128xf32>, tensor<128x128xf32>) {
  %l = fp8.lift %p, %e : tensor<128x256xf4E2M1FN>, tensor<2x128xi32> -> tensor<128x256xf8E4M3FN>
  %w = fp8.assemble %l, %s : tensor<128x256xf8E4M3FN>, tensor<128x1xf32> -> !w
  %0 = fp8.matmul %a, %w : !w, !w -> tensor<128x128xf32>
  %m = fp8.lift %p, %e {n = 1} : tensor<128x256xf4E2M1FN>, tensor<2x128xi32> -> tensor<128x256xf8E4M3FN>
  %v = fp8.assemble %m, %s : tensor<128x256xf8E4M3FN>, tensor<128x1xf32> -> !w
  %1 = fp8.matmul %v, %v : !w, !w -> tensor<128x128xf32>
  return %l, %0, %1 : tensor<128x256xf8E4M3FN>, tensor<128x128xf32>, tensor<128x128xf32>
}

// Bulk copies of exponents want N in fours.
// CHECK-LABEL: func.func @narrow
// CHECK-NOT: folded
// CHECK: return
!n = !fp8.scaled<126x256xf8E4M3FN, block = [1, *], scale = f32>
func.func @narrow(%a: !x, %p: tensor<126x256xf4E2M1FN>, %e: tensor<2x126xi32>, %s: tensor<126x1xf32>) -> tensor<64x126xbf16> {
  %l = fp8.lift %p, %e : tensor<126x256xf4E2M1FN>, tensor<2x126xi32> -> tensor<126x256xf8E4M3FN>
  %w = fp8.assemble %l, %s : tensor<126x256xf8E4M3FN>, tensor<126x1xf32> -> !n
  %0 = fp8.matmul %a, %w : !x, !n -> tensor<64x126xbf16>
  return %0 : tensor<64x126xbf16>
}
