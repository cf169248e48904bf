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
// LAUNCH: %[[UP_TO_16:.*]] = arith.cmpi sle, %[[ROWS]], %c16{{(_[0-9]+)?}} :
// LAUNCH: %[[FIRST:.*]] = arith.constant 0 : index
// LAUNCH: %[[NUMBER:.*]] = arith.select %[[UP_TO_16]], %[[FIRST]],
// LAUNCH: %[[FEW:.*]] = arith.cmpi sle, %[[NUMBER]],
// LAUNCH: %[[RESULT:.*]] = scf.if %[[FEW]] -> (tensor<?x14336xbf16>) {
// LAUNCH: %[[FIRST:.*]] = fp8_gpu.launch @fp8_kernels::@{{.*}}_16x{{[0-9]+}}_{{.*}}swap{{.*}} outs(%[[D]] :
// LAUNCH: scf.yield %[[FIRST]]
// LAUNCH: } else {
// LAUNCH: arith.cmpi sle, %[[NUMBER]],
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

// Codes that kernels read have more, and one may come back where its tiles fill waves of blocks better: each is built and launched once.
// CHECK-LABEL: func.func @waves(
// CHECK: fp8_gpu.few_rows = [
// CHECK-SAME: <most = {{[0-9]+}}, config = [[AGAIN:#fp8_sm90.gemm<tile_m = 224, [^>]*>]]>, #fp8_gpu.few_rows<most = {{[0-9]+}}, config = #fp8_sm90.gemm<tile_m = {{[0-9]+}},
// CHECK-SAME: config = [[AGAIN]]>
// LAUNCH-LABEL: func.func @waves(
// LAUNCH: arith.select
// LAUNCH: fp8_gpu.launch @fp8_kernels::[[AGAIN:@fp8_matmul_sm90a_[0-9a-z_]*_224x128_[0-9a-z_]*]] #
// LAUNCH-NOT: fp8_gpu.launch @fp8_kernels::[[AGAIN]] #
// LAUNCH: return
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
// CHECK: fp8.matmul {{.*}}most = 48, {{.*}}most = 384,
// CHECK: fp8.matmul
// CHECK-NOT: most = {{48|384}},
// CHECK: return
!codes = !fp8.scaled<4352x4864xf8E4M3FN, block = [1, 32], scale = f8E8M0FNU>
func.func @codes(%a: tensor<?x4864xbf16>, %b: !codes) -> (tensor<?x4352xbf16>, tensor<?x4352xbf16>) {
  %w = fp8.dequantize %b {fp8.folded} : !codes -> tensor<4352x4864xbf16>
  %d = fp8.matmul %a, %w accumulate = fast : tensor<?x4864xbf16>, tensor<4352x4864xbf16> -> tensor<?x4352xbf16>
  %e = fp8.matmul %a, %w accumulate = fast {fp8.invariant} : tensor<?x4864xbf16>, tensor<4352x4864xbf16> -> tensor<?x4352xbf16>
  return %d, %e : tensor<?x4352xbf16>, tensor<?x4352xbf16>
}

// Nothing takes no time, whatever computes it.
// CHECK-LABEL: func.func @empty(
// CHECK-NOT: few_rows
// CHECK: return
!none = !fp8.scaled<0x4864xf8E4M3FN, block = [1, 32], scale = f8E8M0FNU>
func.func @empty(%a: tensor<?x4864xbf16>, %b: !none, %x: tensor<?x0xbf16>, %y: tensor<64x0xbf16>) -> (tensor<?x0xbf16>, tensor<?x64xbf16>) {
  %w = fp8.dequantize %b {fp8.folded} : !none -> tensor<0x4864xbf16>
  %d = fp8.matmul %a, %w accumulate = fast : tensor<?x4864xbf16>, tensor<0x4864xbf16> -> tensor<?x0xbf16>
  %e = fp8.matmul %x, %y accumulate = fast : tensor<?x0xbf16>, tensor<64x0xbf16> -> tensor<?x64xbf16>
  return %d, %e : tensor<?x0xbf16>, tensor<?x64xbf16>
}
