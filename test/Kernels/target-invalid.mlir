// RUN: split-file %s %t

// Whoever chooses, builds or serializes kernels needs to know for which GPU.

// RUN: not fp8-opt %t/none.mlir --fp8-select-kernels 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: not fp8-opt %t/none.mlir --fp8-split-fusions 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: not fp8-opt %t/none.mlir --fp8-build-kernels 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: not fp8-opt %t/none.mlir --fp8-serialize-kernels 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: not fp8-translate %t/none.mlir --kernels-to-ptx 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: not fp8-translate %t/none.mlir --kernels-to-cubin 2>&1 | FileCheck %s --check-prefix=NONE
// NONE: error: expected a module with the attribute 'fp8_gpu.target', which fp8-set-target gives it

// And that there are kernels for it.

// RUN: not fp8-opt %t/other.mlir --fp8-select-kernels 2>&1 | FileCheck %s --check-prefix=OTHER
// RUN: not fp8-opt %t/other.mlir --fp8-split-fusions 2>&1 | FileCheck %s --check-prefix=OTHER
// RUN: not fp8-opt %t/other.mlir --fp8-build-kernels 2>&1 | FileCheck %s --check-prefix=OTHER
// OTHER: error: expected 'fp8_gpu.target' to be of one of the chips sm_90a, sm_100a, sm_89, sm_120a, sm_121a, sm_80, but got #fp8_gpu.target<chip = "sm_70",

// A program without kernels needs no target.

// RUN: fp8-opt %t/empty.mlir --fp8-split-fusions --fp8-select-kernels --fp8-build-kernels --fp8-serialize-kernels | FileCheck %s --check-prefix=EMPTY
// EMPTY: module {

//--- empty.mlir
module {
}

//--- none.mlir
!a = !fp8.scaled<64x128xf8E4M3FN, block = [*, *], scale = f32>
func.func @matmul(%a: !a, %x: tensor<64x64xbf16>) -> tensor<64x64xbf16> {
  %0 = fp8.matmul %a, %a accumulate = fast
    {fp8_gpu.config = #fp8_sm90.gemm<tile_m = 64, tile_n = 64, stages = 2, consumers = 1>}
    : !a, !a -> tensor<64x64xbf16>
  %1 = fp8.fusion(%x) {
  ^bb0(%b: tensor<64x64xbf16>):
    %2 = fp8.amax %b block = [*, *] : tensor<64x64xbf16>
    fp8.yield %2 : tensor<1x1xf32>
  } : (tensor<64x64xbf16>) -> tensor<1x1xf32>
  return %0 : tensor<64x64xbf16>
}
gpu.module @fp8_kernels {
  llvm.func @k()
}

//--- other.mlir
!a = !fp8.scaled<64x128xf8E4M3FN, block = [*, *], scale = f32>
module attributes {fp8_gpu.target = #fp8_gpu.target<
    chip = "sm_70", compute_capability = 70, features = "+ptx80", multiprocessors = 108,
    shared_bytes = 166912, registers = 65536, mma_rate = 1024, l2_rate = 49, memory_rate = 34>} {
  func.func @matmul(%a: !a, %x: tensor<64x64xbf16>) -> tensor<64x64xbf16> {
    %0 = fp8.matmul %a, %a accumulate = fast
      {fp8_gpu.config = #fp8_sm90.gemm<tile_m = 64, tile_n = 64, stages = 2, consumers = 1>}
      : !a, !a -> tensor<64x64xbf16>
    %1 = fp8.fusion(%x) {
    ^bb0(%b: tensor<64x64xbf16>):
      %2 = fp8.amax %b block = [*, *] : tensor<64x64xbf16>
      fp8.yield %2 : tensor<1x1xf32>
    } : (tensor<64x64xbf16>) -> tensor<1x1xf32>
    return %0 : tensor<64x64xbf16>
  }
}
