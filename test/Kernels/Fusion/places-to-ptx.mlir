// RUN: fp8-opt --fp8-set-target=chip=sm_90a --fp8-select-kernels --fp8-build-kernels %s -o %t.90
// RUN: fp8-translate --kernels-to-ptx %t.90 | FileCheck %s
// RUN: fp8-opt --fp8-set-target=chip=sm_100a --fp8-select-kernels --fp8-build-kernels %s -o %t.100
// RUN: fp8-translate --kernels-to-ptx %t.100 | FileCheck %s

!x = tensor<1024x2048xbf16>
!t = tensor<2048x1024xbf16>
!one = tensor<1x1xf32>
!w = tensor<4xi32>
!s = tensor<1024x128xf32>
!si = tensor<1024x128xf8E4M3FN>
!c = tensor<2048x64xf32>
!ci = tensor<2048x64xf8E4M3FN>
!q = !fp8.scaled<1024x2048xf4E2M1FN, block = [1, 16], scale = f8E4M3FN, tensor_scale = f32>
!qt = !fp8.scaled<2048x1024xf4E2M1FN, block = [1, 16], scale = f8E4M3FN, tensor_scale = f32>

// Four neighbours share a counter of Philox: for a row of 8 a thread goes through
// ten rounds twice, of which a product in the second depends on the row alone.

// CHECK-LABEL:    .visible .entry fp8_fusion_sm{{.+}}_rows_1x1_
// CHECK-NOT:      cvt.rs
// CHECK-COUNT-19: mul.wide.u32 %{{.+}}, %{{.+}}, -766435501;
// CHECK-NOT:      mul.wide.u32 %{{.+}}, %{{.+}}, -766435501;
// CHECK:          st.global.b32
// CHECK:          ret;
func.func @seed(%x: !x, %s: !s, %si: !si, %ts: !one, %seed: !w) -> tensor<1024x2048xf4E2M1FN> {
  %0 = fp8.fusion(%x, %s, %si, %ts, %seed) {
  ^bb0(%in: !x, %scale: !s, %inverse: !si, %one: !one, %words: !w):
    %q = fp8.quantize %in scale(%scale, %inverse : !s, !si) tensor_scale_inv(%one : !one) seed(%words : !w) : !x -> !q
    %codes, %i, %o = fp8.disassemble %q : !q
    fp8.yield %codes : tensor<1024x2048xf4E2M1FN>
  } {fp8_gpu.config = #fp8_fusion.config<rows = 1, chunks = 1, lanes = 32, across = 1, down = 8, cluster = 1, resident = 4>}
      : (!x, !s, !si, !one, !w) -> tensor<1024x2048xf4E2M1FN>
  return %0 : tensor<1024x2048xf4E2M1FN>
}

// A thread has 4 rows of the 16 that are rotated, and gets two steps' others from
// lanes below. Of each of 8 columns, rows of the codes, it draws once for all 4:
// those products in the first and the third round are the same in all columns.

// CHECK-LABEL:    .visible .entry fp8_fusion_sm{{.+}}_both_16x1_4x1_l8_
// CHECK:          shfl.sync.bfly.b32 {{.+}}, 8, 31, -1;
// CHECK:          shfl.sync.bfly.b32 {{.+}}, 16, 31, -1;
// CHECK:          cvt.rn.bf16x2.f32
// CHECK-COUNT-66: mul.wide.u32 %{{.+}}, %{{.+}}, -766435501;
// CHECK-NOT:      mul.wide.u32 %{{.+}}, %{{.+}}, -766435501;
// CHECK:          bar.sync
// CHECK:          st.global.v2.b32
// CHECK:          ret;
func.func @rotated(%x: !x, %s: !c, %si: !ci, %ts: !one, %seed: !w) -> tensor<2048x1024xf4E2M1FN> {
  %0 = fp8.fusion(%x, %s, %si, %ts, %seed) {
  ^bb0(%in: !x, %scale: !c, %inverse: !ci, %one: !one, %words: !w):
    %e = tensor.empty() : !t
    %t = linalg.transpose ins(%in : !x) outs(%e : !t) permutation = [1, 0]
    %y = fp8.hadamard %t signs = 55272 : !t
    %q = fp8.quantize %y scale(%scale, %inverse : !c, !ci) tensor_scale_inv(%one : !one) seed(%words : !w) : !t -> !qt
    %codes, %i, %o = fp8.disassemble %q : !qt
    fp8.yield %codes : tensor<2048x1024xf4E2M1FN>
  } {fp8_gpu.config = #fp8_fusion.config<rows = 4, chunks = 1, lanes = 8, across = 1, down = 8, cluster = 1, resident = 2>}
      : (!x, !c, !ci, !one, !w) -> tensor<2048x1024xf4E2M1FN>
  return %0 : tensor<2048x1024xf4E2M1FN>
}

// Along rows two lanes have 8 of 16 each: three steps are a thread's own.

// CHECK-LABEL:   .visible .entry fp8_fusion_sm{{.+}}_rows_1x16_1x1_
// CHECK:         ld.global.nc.v4.b32
// CHECK-NOT:     ld.global
// CHECK-COUNT-8: shfl.sync.bfly.b32 {{.+}}, 1, 31, -1;
// CHECK:         ret;
func.func @measured(%x: !x) -> !s {
  %0 = fp8.fusion(%x) {
  ^bb0(%in: !x):
    %y = fp8.hadamard %in signs = 55272 : !x
    %a = fp8.amax %y block = [1, 16] : !x
    fp8.yield %a : !s
  } {fp8_gpu.config = #fp8_fusion.config<rows = 1, chunks = 1, lanes = 32, across = 1, down = 8, cluster = 1, resident = 4>}
      : (!x) -> !s
  return %0 : !s
}
