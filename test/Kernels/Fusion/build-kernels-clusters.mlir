// RUN: fp8-opt --fp8-set-target=chip=sm_90a --fp8-select-kernels --fp8-build-kernels %s | FileCheck %s

// The last of four blocks that have a row between them has nothing of a row of
// three tiles: whole tiles do not say that every block is inside.

// CHECK:      llvm.func @fp8_fusion_sm90a_rows_whole_1x1_l32_w1x1_b1_c4({{.*}}, %[[COLUMNS:[^ :]+]]: i32)
// CHECK-COUNT-4: arith.cmpi ult, %{{.+}}, %[[COLUMNS]] : i32
func.func @outside(%x: tensor<64x768xbf16>) -> tensor<64x1xf32> {
  %0 = fp8.fusion(%x) {
  ^bb0(%a: tensor<64x768xbf16>):
    %1 = fp8.amax %a block = [1, *] : tensor<64x768xbf16>
    fp8.yield %1 : tensor<64x1xf32>
  } {fp8_gpu.config = #fp8_fusion.config<rows = 1, chunks = 1, lanes = 32, across = 1, down = 1, cluster = 4, resident = 1>} : (tensor<64x768xbf16>) -> tensor<64x1xf32>
  return %0 : tensor<64x1xf32>
}
