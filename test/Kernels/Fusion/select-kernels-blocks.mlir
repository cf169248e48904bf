// RUN: fp8-opt --fp8-set-target=chip=sm_90a --fp8-select-kernels %s | FileCheck %s
// Each element takes its block's value, by the index divided.

#id = affine_map<(i, j) -> (i, j)>
!x = tensor<32x64xbf16>

// CHECK-LABEL: func.func @reads_blocks
// CHECK:       fp8.fusion
// CHECK:       } {fp8_gpu.config = #fp8_fusion.config<
func.func @reads_blocks(%x: !x, %y: tensor<2x64xbf16>) -> !x {
  %0 = fp8.fusion(%x, %y) {
  ^bb0(%a: !x, %b: tensor<2x64xbf16>):
    %e = tensor.empty() : !x
    %1 = linalg.generic {indexing_maps = [#id, affine_map<(i, j) -> (i floordiv 16, j)>, #id], iterator_types = ["parallel", "parallel"]} ins(%a, %b : !x, tensor<2x64xbf16>) outs(%e : !x) {
    ^bb0(%v: bf16, %w: bf16, %o: bf16):
      %2 = arith.mulf %v, %w : bf16
      linalg.yield %2 : bf16
    } -> !x
    fp8.yield %1 : !x
  } : (!x, tensor<2x64xbf16>) -> !x
  return %0 : !x
}
