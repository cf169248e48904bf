// RUN: fp8-opt --fp8-set-target=chip=sm_90a --fp8-build-kernels --canonicalize --cse --split-input-file %s | FileCheck %s

// A bias is read once for all rows of a tile, in pairs of columns, before the
// sums are waited for; beyond the result it is clamped. The clamp before an
// 8-bit rounding is the hardware's.

!x = !fp8.scaled<?x4096xf8E4M3FN, block = [*, *], scale = f32>
!w = !fp8.scaled<4096x4096xf8E4M3FN, block = [*, *], scale = f32>
func.func @bias_quantize_amax(%a: !x, %b: !w, %bias: tensor<4096xbf16>, %scale: f32)
    -> (tensor<?x4096xf8E4M3FN>, tensor<1x1xf32>) {
  %0:2 = fp8.matmul %a, %b accumulate = fast epilogue(%bias : tensor<4096xbf16>) {
  ^bb0(%acc: f32, %b0: bf16):
    %high = arith.constant 448.0 : f32
    %low = arith.constant -448.0 : f32
    %1 = arith.extf %b0 : bf16 to f32
    %2 = arith.addf %acc, %1 : f32
    %3 = arith.mulf %2, %scale : f32
    %above = arith.cmpf ogt, %3, %high : f32
    %4 = arith.select %above, %high, %3 : f32
    %below = arith.cmpf olt, %4, %low : f32
    %5 = arith.select %below, %low, %4 : f32
    %6 = arith.truncf %5 : f32 to f8E4M3FN
    fp8.yield %6, %2 : f8E4M3FN, f32
  } {fp8_gpu.config = #fp8_sm90.gemm<tile_m = 64, tile_n = 16, stages = 2, consumers = 1>}
    : !x, !w -> tensor<?x4096xf8E4M3FN>, tensor<1x1xf32>
  return %0#0, %0#1 : tensor<?x4096xf8E4M3FN>, tensor<1x1xf32>
}

// CHECK-LABEL: llvm.func @fp8_matmul
// CHECK-SAME: %[[BIAS:[a-z0-9]+]]: !llvm.ptr<1>, %[[SCALE:[a-z0-9]+]]: f32, %[[AMAX:[a-z0-9]+]]: !llvm.ptr<1>, %[[M:[a-z0-9]+]]: i32, %[[N:[a-z0-9]+]]: i32, %[[K:[a-z0-9]+]]: i32,
// CHECK: %[[SLOT:.*]] = llvm.alloca
// CHECK: %[[PAIRS:.*]]:2 = scf.if
// CHECK-COUNT-2: llvm.load %{{.*}} invariant : !llvm.ptr<1> -> i32
// CHECK: } else {
// CHECK: arith.minui
// CHECK-COUNT-4: llvm.load %{{.*}} invariant : !llvm.ptr<1> -> i16
// CHECK: %[[BITS:.*]] = arith.shli %[[PAIRS]]#0,
// CHECK: %[[WIDE:.*]] = arith.bitcast %[[BITS]] : i32 to f32
// CHECK: wgmma.wait_group.sync.aligned 0
// CHECK-NOT: invariant : !llvm.ptr<1> -> i
// CHECK: %[[SUM:.*]] = math.fma %{{.*}}, %{{.*}}, %[[WIDE]]
// CHECK: %[[SCALED:.*]] = arith.mulf %[[SUM]], %[[SCALE]] : f32
// CHECK: math.absf %[[SUM]]
// CHECK: arith.maxnumf
// CHECK: nvvm.convert.f32x2.to.f8x2 %{{.*}}, %[[SCALED]] {{.*}}sat = #nvvm.sat_mode<satfinite>} : i16(f8E4M3FN)
// CHECK-NOT: invariant : !llvm.ptr<1> -> i
// CHECK: nvvm.redux.sync umax
// CHECK: llvm.atomicrmw umax %[[AMAX]], %{{.*}} monotonic

// -----

// A tensor of the result's shape is read for each row; factors per row and
// column multiply the sum, with one rounding for that and what is added.

!x = !fp8.scaled<?x4096xf8E4M3FN, block = [1, *], scale = f32>
!w = !fp8.scaled<4096x4096xf8E4M3FN, block = [1, *], scale = f32>
func.func @residual(%a: !x, %b: !w, %r: tensor<?x4096xf32>) -> tensor<?x4096xf32> {
  %0 = fp8.matmul %a, %b accumulate = fast epilogue(%r : tensor<?x4096xf32>) {
  ^bb0(%acc: f32, %r0: f32):
    %1 = arith.addf %acc, %r0 : f32
    fp8.yield %1 : f32
  } {fp8_gpu.config = #fp8_sm90.gemm<tile_m = 64, tile_n = 8, stages = 2, consumers = 1>}
    : !x, !w -> tensor<?x4096xf32>
  return %0 : tensor<?x4096xf32>
}

// CHECK-LABEL: llvm.func @fp8_matmul_sm90a_e4m3_e4m3_f32_row_row_fast
// CHECK: %[[A:.*]] = llvm.load %{{.*}} invariant : !llvm.ptr<1> -> f32
// CHECK: %[[B:.*]] = llvm.load %{{.*}} invariant : !llvm.ptr<1> -> vector<2xf32>
// CHECK: %[[B0:.*]] = llvm.extractelement %[[B]]
// CHECK: %[[FACTOR:.*]] = arith.mulf %[[A]], %[[B0]]
// CHECK: llvm.load %{{.*}} invariant : !llvm.ptr<1> -> vector<2xf32>
// CHECK: math.fma %{{.*}}, %[[FACTOR]]
// The second row.
// CHECK: llvm.load %{{.*}} invariant : !llvm.ptr<1> -> f32
// CHECK: llvm.load %{{.*}} invariant : !llvm.ptr<1> -> vector<2xf32>
// CHECK-NOT: llvm.load

// -----

// Which products go into sums is said here, of those with several users as
// well: LLVM, which would look through the sign of one, may find no others.

!x = !fp8.scaled<?x4096xf8E4M3FN, block = [*, *], scale = f32>
!w = !fp8.scaled<4096x4096xf8E4M3FN, block = [*, *], scale = f32>
func.func @signs(%a: !x, %b: !w, %r: tensor<?x4096xf32>) -> tensor<?x4096xf32> {
  %0 = fp8.matmul %a, %b accumulate = fast epilogue(%r : tensor<?x4096xf32>) {
  ^bb0(%acc: f32, %r0: f32):
    %1 = math.absf %acc : f32
    %2 = arith.subf %1, %acc : f32
    %3 = arith.negf %acc : f32
    %4 = arith.addf %3, %r0 : f32
    %5 = arith.addf %2, %4 : f32
    fp8.yield %5 : f32
  } {fp8_gpu.config = #fp8_sm90.gemm<tile_m = 64, tile_n = 8, stages = 2, consumers = 1>}
    : !x, !w -> tensor<?x4096xf32>
  return %0 : tensor<?x4096xf32>
}

// CHECK-LABEL: llvm.func @fp8_matmul
// CHECK: %[[SCALED:.*]] = arith.mulf %[[SUM:.*]], %[[FACTOR:.*]] fastmath<contract>
// CHECK: %[[MAGNITUDE:.*]] = math.absf %[[SCALED]] : f32
// CHECK: %[[MINUS:.*]] = arith.negf %[[SUM]] : f32
// CHECK: %[[REST:.*]] = math.fma %[[MINUS]], %[[FACTOR]], %[[MAGNITUDE]] : f32
// CHECK: %[[NEGATED:.*]] = arith.negf %[[SCALED]] : f32
// CHECK: %[[ADDED:.*]] = arith.addf %[[NEGATED]], %{{.*}} : f32
// CHECK: arith.addf %[[REST]], %[[ADDED]] : f32
