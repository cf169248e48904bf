// RUN: fp8-opt %s --fp8-set-target=chip=sm_90a --fp8-build-kernels --canonicalize | FileCheck %s

// Roundings within an epilogue are conversions of two numbers, of which the lower
// is 0, so that a bf16 is an f32; the last one is that of the store.

!x = !fp8.scaled<64x128xf8E4M3FN, block = [*, *], scale = f32>

// CHECK-LABEL: llvm.func @fp8_matmul
// CHECK-NOT:   arith.truncf
// CHECK:       %[[PAIR:.+]] = nvvm.convert.f32x2.to.bf16x2 %{{.+}}, %{{.+}} : vector<2xbf16>
// CHECK:       %[[WIDE:.+]] = llvm.bitcast %[[PAIR]] : vector<2xbf16> to f32
// CHECK:       arith.mulf %[[WIDE]], %[[WIDE]]
// CHECK-NOT:   arith.truncf
// CHECK:       llvm.return
func.func @bf16(%a: !x, %b: !x) -> tensor<64x64xbf16> {
  %0 = fp8.matmul %a, %b accumulate = fast epilogue {
  ^bb0(%acc: f32):
    %1 = arith.truncf %acc : f32 to bf16
    %2 = arith.extf %1 : bf16 to f32
    %3 = arith.mulf %2, %2 : f32
    %4 = arith.truncf %3 : f32 to bf16
    fp8.yield %4 : bf16
  } {fp8_gpu.config = #fp8_sm90.gemm<tile_m = 64, tile_n = 16, stages = 2, consumers = 1>} : !x, !x -> tensor<64x64xbf16>
  return %0 : tensor<64x64xbf16>
}

// CHECK-LABEL: llvm.func @fp8_matmul
// CHECK-NOT:   arith.truncf
// CHECK:       nvvm.convert.f32x2.to.f16x2
// CHECK-NOT:   arith.truncf
// CHECK:       llvm.return
func.func @f16(%a: !x, %b: !x) -> tensor<64x64xf16> {
  %0 = fp8.matmul %a, %b accumulate = fast epilogue {
  ^bb0(%acc: f32):
    %1 = arith.truncf %acc : f32 to f16
    %2 = arith.extf %1 : f16 to f32
    %3 = arith.mulf %2, %2 : f32
    %4 = arith.truncf %3 : f32 to f16
    fp8.yield %4 : f16
  } {fp8_gpu.config = #fp8_sm90.gemm<tile_m = 64, tile_n = 16, stages = 2, consumers = 1>} : !x, !x -> tensor<64x64xf16>
  return %0 : tensor<64x64xf16>
}
