// RUN: fp8-opt --fp8-set-target=chip=sm_89 --fp8-select-kernels --split-input-file %s | FileCheck %s
// RUN: fp8-opt --fp8-decompose-attention=chip=sm_120a --split-input-file %s 2> %t.remarks | FileCheck %s --check-prefix=REST
// RUN: FileCheck %s --check-prefix=REMARK < %t.remarks
// RUN: fp8-opt --fp8-set-target=chip=sm_89 --fp8-select-kernels --fp8-build-kernels --split-input-file %s | FileCheck %s --check-prefix=BUILT

// Columns follow what a thread has registers for, and rows what there is shared memory for.

!q = tensor<2x?x8x128xbf16>
!k = tensor<2x?x2x128xbf16>
!r = tensor<2x8x?xf32>
// CHECK-LABEL: @wide
// CHECK: fp8.attention_backward {{.*}}fp8_gpu.config = #fp8_mma.attention<tile_q = 128, tile_k = 32, stages = 2>
// REST-LABEL: @wide
// REST: fp8.attention_backward
func.func @wide(%grad: !q, %q: !q, %k: !k, %v: !k, %rows: !r) -> (!q, !k, !k) {
  %0:3 = fp8.attention_backward %grad, %q, %k, %v, %rows, %rows scale = 0.088 : !q, !q, !k, !k, !r, !r -> !q, !k, !k
  return %0#0, %0#1, %0#2 : !q, !k, !k
}

// -----

!q = tensor<2x?x8x64xf16>
!s = !fp8.scaled<2x?x8x64xf8E5M2, block = [*, *, *, *], scale = f32>
!r = tensor<2x8x?xf32>
// CHECK-LABEL: @narrow
// CHECK: fp8.attention_backward {{.*}}fp8_gpu.config = #fp8_mma.attention<tile_q = 128, tile_k = 64, stages = 3>
// REST-LABEL: @narrow
// REST: fp8.attention_backward
func.func @narrow(%grad: !q, %q: !s, %rows: !r) -> (!q, !q, !q) {
  %0:3 = fp8.attention_backward %grad, %q, %q, %q, %rows, %rows scale = 0.125 window = [*, 0] : !q, !s, !s, !s, !r, !r -> !q, !q, !q
  return %0#0, %0#1, %0#2 : !q, !q, !q
}

// -----

// Sums of 256 columns take tiles of few. All have an order, asked for or not, and no block waits for another.

!q = tensor<1x?x2x256xbf16>
!r = tensor<1x2x?xf32>
// CHECK-LABEL: @widest
// CHECK: fp8.attention_backward {{.*}}fp8_gpu.config = #fp8_mma.attention<tile_q = 64, tile_k = 16, stages = 2>
// REST-LABEL: @widest
// REST: fp8.attention_backward
// BUILT: llvm.func @fp8_attention_backward_sm89_bf16_d256_any_64x16_s2
// BUILT-NOT: llvm.atomicrmw
func.func @widest(%grad: !q, %q: !q, %rows: !r) -> !q {
  %0:3 = fp8.attention_backward %grad, %q, %q, %q, %rows, %rows scale = 0.1 order = any : !q, !q, !q, !q, !r, !r -> !q, !q, !q
  return %0#0 : !q
}

// -----

// What no config has room for is the definition.

!q = tensor<1x16x2x72xbf16>
!r = tensor<1x2x16xf32>
// REMARK: remark: no kernel: expected head dimensions of up to 256, multiples of 16, but got 72; computed as products
// REST-LABEL: @other
// REST-NOT: fp8.attention_backward
// REST: math.exp
func.func @other(%grad: !q, %q: !q, %rows: !r) -> (!q, !q, !q) {
  %0:3 = fp8.attention_backward %grad, %q, %q, %q, %rows, %rows scale = 0.1 : !q, !q, !q, !q, !r, !r -> !q, !q, !q
  return %0#0, %0#1, %0#2 : !q, !q, !q
}
