// RUN: fp8-opt --fp8-set-target=chip=sm_90a --fp8-select-kernels --fp8-build-kernels %s | FileCheck %s

// Factors of blocks of 128 columns are stored by the lanes that have the block,
// each those of a row.

// CHECK-LABEL: llvm.func @fp8_fusion_sm90a_both
// CHECK-COUNT-1: llvm.store %{{.+}}, %{{.+}} : f32, !llvm.ptr<1>
// CHECK-NOT:     llvm.store %{{.+}}, %{{.+}} : f32, !llvm.ptr<1>
// CHECK:         llvm.return
!wide = !fp8.scaled<64x256xf8E4M3FN, block = [1, 128], scale = f32>
func.func @wide(%c: tensor<64x256xf8E4M3FN>, %f: tensor<64x2xf32>) -> (tensor<256x64xf8E4M3FN>, tensor<2x64xf32>) {
  %0:2 = fp8.fusion(%c, %f) {
  ^bb0(%codes: tensor<64x256xf8E4M3FN>, %factors: tensor<64x2xf32>):
    %q = fp8.assemble %codes, %factors : tensor<64x256xf8E4M3FN>, tensor<64x2xf32> -> !wide
    %t = fp8.transpose %q permutation = [1, 0] : !wide
    %p, %s = fp8.disassemble %t : !fp8.scaled<256x64xf8E4M3FN, block = [128, 1], scale = f32>
    fp8.yield %p, %s : tensor<256x64xf8E4M3FN>, tensor<2x64xf32>
  } : (tensor<64x256xf8E4M3FN>, tensor<64x2xf32>) -> (tensor<256x64xf8E4M3FN>, tensor<2x64xf32>)
  return %0#0, %0#1 : tensor<256x64xf8E4M3FN>, tensor<2x64xf32>
}

// Blocks of 24 begin within what lanes share: whoever has the first column of
// one stores those of all its rows.

// CHECK-LABEL: llvm.func @fp8_fusion_sm90a_both
// CHECK-COUNT-8: llvm.store %{{.+}}, %{{.+}} : f32, !llvm.ptr<1>
// CHECK-NOT:     llvm.store %{{.+}}, %{{.+}} : f32, !llvm.ptr<1>
// CHECK:         llvm.return
!narrow = !fp8.scaled<64x240xf8E4M3FN, block = [1, 24], scale = f32>
func.func @narrow(%c: tensor<64x240xf8E4M3FN>, %f: tensor<64x10xf32>) -> (tensor<240x64xf8E4M3FN>, tensor<10x64xf32>) {
  %0:2 = fp8.fusion(%c, %f) {
  ^bb0(%codes: tensor<64x240xf8E4M3FN>, %factors: tensor<64x10xf32>):
    %q = fp8.assemble %codes, %factors : tensor<64x240xf8E4M3FN>, tensor<64x10xf32> -> !narrow
    %t = fp8.transpose %q permutation = [1, 0] : !narrow
    %p, %s = fp8.disassemble %t : !fp8.scaled<240x64xf8E4M3FN, block = [24, 1], scale = f32>
    fp8.yield %p, %s : tensor<240x64xf8E4M3FN>, tensor<10x64xf32>
  } : (tensor<64x240xf8E4M3FN>, tensor<64x10xf32>) -> (tensor<240x64xf8E4M3FN>, tensor<10x64xf32>)
  return %0#0, %0#1 : tensor<240x64xf8E4M3FN>, tensor<10x64xf32>
}
