// RUN: fp8-opt --fp8-set-target=chip=sm_90a --fp8-build-kernels %s | fp8-translate --kernels-to-ptx | FileCheck %s

// Words come through the read-only cache and are permuted in registers, none of
// which spills.

// CHECK-LABEL: .visible .entry fp8_transpose_sm90a_b1_w8(
// CHECK-NOT:   .local
// CHECK:       griddepcontrol.wait
// CHECK:       ld.global.nc.b32
// CHECK:       prmt.b32
// CHECK:       st.shared.b32
// CHECK:       bar{{(rier)?}}.sync
// CHECK:       ld.shared.b32
// CHECK:       st.global.b32
func.func @codes(%q: !fp8.scaled<256x64xf8E4M3FN, block = [*, *], scale = f32>) -> !fp8.scaled<64x256xf8E4M3FN, block = [*, *], scale = f32> {
  %0 = fp8.transpose %q permutation = [1, 0] {fp8_gpu.config = #fp8_transpose.config<warps = 8>} : !fp8.scaled<256x64xf8E4M3FN, block = [*, *], scale = f32>
  return %0 : !fp8.scaled<64x256xf8E4M3FN, block = [*, *], scale = f32>
}
