// RUN: fp8-opt %s --split-input-file --fp8-fuse-casts | FileCheck %s

!x = !fp8.scaled<32x128xf8E4M3FN, block = [*, *], scale = f32>
!w = !fp8.scaled<64x128xf8E4M3FN, block = [*, *], scale = f32>
!q = !fp8.scaled<32x64xf8E4M3FN, block = [*, *], scale = f32>

// The codes are the result, with the rounding that the result had.
// CHECK-LABEL: func @quantized(
// CHECK-SAME: %[[A:.*]]: !fp8.scaled<32x128{{.*}}, %[[B:.*]]: !fp8.scaled<64x128{{.*}}, %[[S:.*]]: tensor<1x1xf32>, %[[I:.*]]: tensor<1x1xf32>
// CHECK: %[[R:.*]] = fp8.matmul %[[A]], %[[B]] {{.*}}epilogue(%[[S]] : tensor<1x1xf32>) {
// CHECK: ^bb0(%[[ACC:.*]]: f32, %[[SCALE:.*]]: f32):
// CHECK: %[[NARROW:.*]] = arith.truncf %[[ACC]] : f32 to bf16
// CHECK: %[[WIDE:.*]] = arith.extf %[[NARROW]] : bf16 to f32
// CHECK: %[[SCALED:.*]] = arith.mulf %[[WIDE]], %[[SCALE]] : f32
// CHECK: arith.cmpf ogt, %[[SCALED]]
// CHECK: arith.cmpf olt
// CHECK: %[[CODE:.*]] = arith.truncf %{{.*}} : f32 to f8E4M3FN
// CHECK: fp8.yield %[[CODE]] : f8E4M3FN
// CHECK: -> tensor<32x64xf8E4M3FN>
// CHECK: fp8.assemble %[[R]], %[[I]]
func.func @quantized(%a: !x, %b: !w, %s: tensor<1x1xf32>, %si: tensor<1x1xf32>) -> !q {
  %0 = fp8.matmul %a, %b : !x, !w -> tensor<32x64xbf16>
  %1 = fp8.quantize %0 scale(%s, %si : tensor<1x1xf32>, tensor<1x1xf32>) : tensor<32x64xbf16> -> !q
  return %1 : !q
}

// -----

!x = !fp8.scaled<32x128xf8E4M3FN, block = [*, *], scale = f32>
!w = !fp8.scaled<64x128xf8E4M3FN, block = [*, *], scale = f32>
!q = !fp8.scaled<32x64xf8E5M2, block = [*, *], scale = f32>

// Both at once: what is measured is what is quantized. The scale moves up.
// CHECK-LABEL: func @delayed(
// CHECK: %[[SCALE:.*]], %[[INV:.*]] = fp8.read_scale
// CHECK: %[[R:.*]], %[[AMAX:.*]] = fp8.matmul {{.*}} epilogue(%{{.*}}, %[[SCALE]] : tensor<64xf32>, tensor<1x1xf32>) {
// CHECK: ^bb0(%[[ACC:.*]]: f32, %[[BIAS:.*]]: f32, %{{.*}}: f32):
// CHECK: %[[SUM:.*]] = arith.addf %[[ACC]], %[[BIAS]]
// CHECK: fp8.yield %{{.*}}, %[[SUM]] : f8E5M2, f32
// CHECK: -> tensor<32x64xf8E5M2>, tensor<1x1xf32>
// CHECK: fp8.record_amax %[[AMAX]]
func.func @delayed(%a: !x, %b: !w, %bias: tensor<64xf32>, %state: !fp8.state) -> !q {
  %c0 = arith.constant 0 : index
  %0 = fp8.matmul %a, %b epilogue(%bias : tensor<64xf32>) {
  ^bb0(%acc: f32, %v: f32):
    %sum = arith.addf %acc, %v : f32
    fp8.yield %sum : f32
  } : !x, !w -> tensor<32x64xf32>
  %s, %si = fp8.read_scale %state[%c0] : tensor<1x1xf32>
  %1 = fp8.quantize %0 scale(%s, %si : tensor<1x1xf32>, tensor<1x1xf32>) : tensor<32x64xf32> -> !q
  %2 = fp8.amax %0 block = [*, *] : tensor<32x64xf32>
  fp8.record_amax %2, %state[%c0] : tensor<1x1xf32>
  return %1 : !q
}

// -----

!x = !fp8.scaled<32x128xf8E4M3FN, block = [*, *], scale = f32>
!w = !fp8.scaled<64x128xf8E4M3FN, block = [*, *], scale = f32>
!q = !fp8.scaled<32x64xf8E4M3FN, block = [*, *], scale = f32>

// The scale of its own amax is known too late for the codes, not for the amax.
// CHECK-LABEL: func @current(
// CHECK: %[[R:.*]], %[[AMAX:.*]] = fp8.matmul
// CHECK: fp8.compute_scale %[[AMAX]]
// CHECK: fp8.quantize %[[R]]
func.func @current(%a: !x, %b: !w) -> !q {
  %0 = fp8.matmul %a, %b : !x, !w -> tensor<32x64xbf16>
  %1 = fp8.amax %0 block = [*, *] : tensor<32x64xbf16>
  %s, %si = fp8.compute_scale %1 format = f8E4M3FN scale_type = f32 : tensor<1x1xf32>
  %2 = fp8.quantize %0 scale(%s, %si : tensor<1x1xf32>, tensor<1x1xf32>) : tensor<32x64xbf16> -> !q
  return %2 : !q
}

// -----

!x = !fp8.scaled<32x128xf8E4M3FN, block = [*, *], scale = f32>
!w = !fp8.scaled<64x128xf8E4M3FN, block = [*, *], scale = f32>
!q = !fp8.scaled<32x64xf8E4M3FN, block = [*, *], scale = f32>

// Somebody else needs the result in high precision.
// CHECK-LABEL: func @two_uses(
// CHECK: fp8.matmul {{.*}} -> tensor<32x64xbf16>
// CHECK: fp8.quantize
func.func @two_uses(%a: !x, %b: !w, %s: tensor<1x1xf32>, %si: tensor<1x1xf32>) -> (!q, tensor<32x64xbf16>) {
  %0 = fp8.matmul %a, %b : !x, !w -> tensor<32x64xbf16>
  %1 = fp8.quantize %0 scale(%s, %si : tensor<1x1xf32>, tensor<1x1xf32>) : tensor<32x64xbf16> -> !q
  return %1, %0 : !q, tensor<32x64xbf16>
}

// -----

!x = !fp8.scaled<32x128xf8E4M3FN, block = [*, *], scale = f32>
!w = !fp8.scaled<64x128xf8E4M3FN, block = [*, *], scale = f32>
!q = !fp8.scaled<32x64xf8E4M3FN, block = [*, *], scale = f32>

// One pass over memory makes both copies of one read.
// CHECK-LABEL: func @transposed_copy(
// CHECK: fp8.matmul {{.*}} -> tensor<32x64xbf16>
// CHECK: fp8.quantize
// CHECK: fp8.transpose
func.func @transposed_copy(%a: !x, %b: !w, %s: tensor<1x1xf32>, %si: tensor<1x1xf32>)
    -> (!q, !fp8.scaled<64x32xf8E4M3FN, block = [*, *], scale = f32>) {
  %0 = fp8.matmul %a, %b : !x, !w -> tensor<32x64xbf16>
  %1 = fp8.quantize %0 scale(%s, %si : tensor<1x1xf32>, tensor<1x1xf32>) : tensor<32x64xbf16> -> !q
  %2 = fp8.transpose %1 permutation = [1, 0] : !q
  return %1, %2 : !q, !fp8.scaled<64x32xf8E4M3FN, block = [*, *], scale = f32>
}

// -----

!x = !fp8.scaled<32x128xf8E4M3FN, block = [*, *], scale = f32>
!w = !fp8.scaled<64x128xf8E4M3FN, block = [*, *], scale = f32>
!q = !fp8.scaled<32x64xf8E4M3FN, block = [1, *], scale = f32>

// Blocks are not the whole tensor, an amax of which may not drop NaN.
// CHECK-LABEL: func @other_amaxes(
// CHECK: %[[R:.*]] = fp8.matmul
// CHECK: fp8.amax %[[R]] block = [1, *]
// CHECK: fp8.amax %[[R]] block = [*, *] propagate_nan
// CHECK: fp8.quantize %[[R]]
func.func @other_amaxes(%a: !x, %b: !w, %s: tensor<32x1xf32>, %si: tensor<32x1xf32>)
    -> (tensor<32x1xf32>, tensor<1x1xf32>, !q) {
  %0 = fp8.matmul %a, %b : !x, !w -> tensor<32x64xbf16>
  %1 = fp8.amax %0 block = [1, *] : tensor<32x64xbf16>
  %2 = fp8.amax %0 block = [*, *] propagate_nan : tensor<32x64xbf16>
  %3 = fp8.quantize %0 scale(%s, %si : tensor<32x1xf32>, tensor<32x1xf32>) : tensor<32x64xbf16> -> !q
  return %1, %2, %3 : tensor<32x1xf32>, tensor<1x1xf32>, !q
}

// -----

// A matmul in high precision measures its result, too.
// CHECK-LABEL: func @plain(
// CHECK: %[[R:.*]], %[[AMAX:.*]] = fp8.matmul
// CHECK-NOT: fp8.amax
// CHECK: return %[[R]], %[[AMAX]]
func.func @plain(%a: tensor<32x128xbf16>, %b: tensor<64x128xbf16>) -> (tensor<32x64xbf16>, tensor<1x1xf32>) {
  %0 = fp8.matmul %a, %b accumulate=fast : tensor<32x128xbf16>, tensor<64x128xbf16> -> tensor<32x64xbf16>
  %1 = fp8.amax %0 block = [*, *] : tensor<32x64xbf16>
  return %0, %1 : tensor<32x64xbf16>, tensor<1x1xf32>
}

// -----

// And yields codes: a rotation of queries is one, with a constant.
// CHECK-LABEL: func @plain_codes(
// CHECK-SAME: %[[A:[^:]*]]: tensor<32x128xbf16>, %[[B:[^:]*]]: tensor<64x128xbf16>, %[[S:[^:]*]]: tensor<1x1xf32>, %[[SI:[^:]*]]:
// CHECK: %[[CODES:.*]], %[[AMAX:.*]] = fp8.matmul %[[A]], %[[B]] {{.*}}epilogue(%[[S]] : tensor<1x1xf32>)
// CHECK: arith.truncf %{{.*}} : f32 to bf16
// CHECK: arith.truncf %{{.*}} : f32 to f8E4M3FN
// CHECK: -> tensor<32x64xf8E4M3FN>, tensor<1x1xf32>
// CHECK: %[[Q:.*]] = fp8.assemble %[[CODES]], %[[SI]]
// CHECK: return %[[Q]], %[[AMAX]]
func.func @plain_codes(%a: tensor<32x128xbf16>, %b: tensor<64x128xbf16>, %s: tensor<1x1xf32>, %si: tensor<1x1xf32>)
    -> (!fp8.scaled<32x64xf8E4M3FN, block = [*, *], scale = f32>, tensor<1x1xf32>) {
  %0 = fp8.matmul %a, %b accumulate=fast : tensor<32x128xbf16>, tensor<64x128xbf16> -> tensor<32x64xbf16>
  %1 = fp8.quantize %0 scale(%s, %si : tensor<1x1xf32>, tensor<1x1xf32>) : tensor<32x64xbf16> -> !fp8.scaled<32x64xf8E4M3FN, block = [*, *], scale = f32>
  %2 = fp8.amax %0 block = [*, *] : tensor<32x64xbf16>
  return %1, %2 : !fp8.scaled<32x64xf8E4M3FN, block = [*, *], scale = f32>, tensor<1x1xf32>
}
