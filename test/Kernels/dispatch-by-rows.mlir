// RUN: fp8-opt %s --fp8-set-target=chip=sm_90a --fp8-select-kernels --fp8-dispatch-by-rows | FileCheck %s
// RUN: fp8-opt %s --fp8-set-target=chip=sm_90a --fp8-select-kernels --fp8-dispatch-by-rows --fp8-build-kernels --fp8-launch-kernels | FileCheck %s --check-prefix=LAUNCH

!a = !fp8.scaled<?x4096xf8E4M3FN, block = [*, *], scale = f32>
!b = !fp8.scaled<14336x4096xf8E4M3FN, block = [*, *], scale = f32>

// Few rows are the columns of the tensor core's tile; more have tiles of their own.
// CHECK-LABEL: func.func @rows(
// CHECK: fp8.matmul {{.*}}fp8_gpu.config = #fp8_sm90.gemm<tile_m = {{128|192|256}}, {{.*}}fp8_gpu.few_rows = [
// CHECK-SAME: #fp8_gpu.few_rows<most = 16, config = #fp8_sm90.gemm<tile_m = 16,
// CHECK-SAME: swap_ab
// CHECK-SAME: #fp8_gpu.few_rows<most = 32, config = #fp8_sm90.gemm<tile_m = 32,
// LAUNCH-LABEL: func.func @rows(
// LAUNCH: %[[D:.*]] = tensor.empty(%{{.*}}) : tensor<?x14336xbf16>
// LAUNCH: %[[ROWS:.*]] = tensor.dim %[[D]], %{{.*}}
// LAUNCH: %[[FEW:.*]] = arith.cmpi sle, %[[ROWS]], %c16{{.*}}
// LAUNCH: %[[RESULT:.*]] = scf.if %[[FEW]] -> (tensor<?x14336xbf16>) {
// LAUNCH: %[[FIRST:.*]] = fp8_gpu.launch @fp8_kernels::@{{.*}}_16x{{[0-9]+}}_{{.*}}swap{{.*}} outs(%[[D]] :
// LAUNCH: scf.yield %[[FIRST]]
// LAUNCH: } else {
// LAUNCH: arith.cmpi sle, %[[ROWS]], %c32{{.*}}
// LAUNCH: fp8_gpu.launch @fp8_kernels::@{{.*}}_32x{{[0-9]+}}_{{.*}} outs(%[[D]] :
// LAUNCH: return %[[RESULT]]
func.func @rows(%a: !a, %b: !b) -> tensor<?x14336xbf16> {
  %d = fp8.matmul %a, %b : !a, !b -> tensor<?x14336xbf16>
  return %d : tensor<?x14336xbf16>
}

// In high precision too.
// CHECK-LABEL: func.func @plain(
// CHECK: fp8_gpu.few_rows = [#fp8_gpu.few_rows<most = 16,
func.func @plain(%a: tensor<?x4096xbf16>, %b: tensor<14336x4096xbf16>) -> tensor<?x14336xbf16> {
  %d = fp8.matmul %a, %b accumulate = fast : tensor<?x4096xbf16>, tensor<14336x4096xbf16> -> tensor<?x14336xbf16>
  return %d : tensor<?x14336xbf16>
}

// Codes that kernels read have more for numbers in between, where the next one's tiles would fill waves of blocks badly.
// CHECK-LABEL: func.func @waves(
// CHECK: fp8_gpu.few_rows = [#fp8_gpu.few_rows<most = 16,
// CHECK-SAME: <most = 1024, config = #fp8_sm90.gemm<tile_m = 176,
// CHECK-SAME: <most = 1280, config = #fp8_sm90.gemm<tile_m = 216,
!wide = !fp8.scaled<5120x8192xf8E4M3FN, block = [128, 128], scale = f32>
func.func @waves(%a: tensor<?x8192xbf16>, %b: !wide) -> tensor<?x5120xbf16> {
  %w = fp8.dequantize %b {fp8.folded} : !wide -> tensor<5120x8192xbf16>
  %d = fp8.matmul %a, %w accumulate = fast : tensor<?x8192xbf16>, tensor<5120x8192xbf16> -> tensor<?x5120xbf16>
  return %d : tensor<?x5120xbf16>
}

// An amax is recorded in place, of one launch.
// CHECK-LABEL: func.func @amax(
// CHECK-NOT: few_rows
// CHECK: return
func.func @amax(%a: !a, %b: !b) -> (tensor<?x14336xbf16>, tensor<1x1xf32>) {
  %d, %amax = fp8.matmul %a, %b epilogue {
  ^bb0(%x: f32):
    %y = arith.truncf %x : f32 to bf16
    fp8.yield %y, %x : bf16, f32
  } : !a, !b -> tensor<?x14336xbf16>, tensor<1x1xf32>
  return %d, %amax : tensor<?x14336xbf16>, tensor<1x1xf32>
}

// Nor where there is nothing to choose by.
// CHECK-LABEL: func.func @known(
// CHECK-NOT: few_rows
// CHECK: return
func.func @known(%a: !fp8.scaled<64x4096xf8E4M3FN, block = [*, *], scale = f32>, %b: !b) -> tensor<64x14336xbf16> {
  %d = fp8.matmul %a, %b : !fp8.scaled<64x4096xf8E4M3FN, block = [*, *], scale = f32>, !b -> tensor<64x14336xbf16>
  return %d : tensor<64x14336xbf16>
}

// CHECK-LABEL: func.func @unknown(
// CHECK-NOT: few_rows
// CHECK: return
func.func @unknown(%a: !fp8.scaled<?x?xf8E4M3FN, block = [*, *], scale = f32>, %b: !fp8.scaled<?x?xf8E4M3FN, block = [*, *], scale = f32>) -> tensor<?x?xbf16> {
  %d = fp8.matmul %a, %b : !fp8.scaled<?x?xf8E4M3FN, block = [*, *], scale = f32>, !fp8.scaled<?x?xf8E4M3FN, block = [*, *], scale = f32> -> tensor<?x?xbf16>
  return %d : tensor<?x?xbf16>
}

// Weights that kernels decode have more of them, but not where all numbers of rows have to have the same bits.
// CHECK-LABEL: func.func @codes(
// CHECK: fp8.matmul {{.*}}most = 512, {{.*}}most = 768, {{.*}}most = 1024,
// CHECK: fp8.matmul
// CHECK-NOT: most = 768
// CHECK: return
!codes = !fp8.scaled<4352x4864xf8E4M3FN, block = [1, 32], scale = f8E8M0FNU>
func.func @codes(%a: tensor<?x4864xbf16>, %b: !codes) -> (tensor<?x4352xbf16>, tensor<?x4352xbf16>) {
  %w = fp8.dequantize %b {fp8.folded} : !codes -> tensor<4352x4864xbf16>
  %d = fp8.matmul %a, %w accumulate = fast : tensor<?x4864xbf16>, tensor<4352x4864xbf16> -> tensor<?x4352xbf16>
  %e = fp8.matmul %a, %w accumulate = fast {fp8.invariant} : tensor<?x4864xbf16>, tensor<4352x4864xbf16> -> tensor<?x4352xbf16>
  return %d, %e : tensor<?x4352xbf16>, tensor<?x4352xbf16>
}
