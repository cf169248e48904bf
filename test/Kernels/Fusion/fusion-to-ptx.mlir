// RUN: fp8-opt --fp8-form-fusions --fp8-set-target=chip=sm_90a --fp8-select-kernels --fp8-build-kernels %s -o %t
// RUN: fp8-translate --kernels-to-ptx %t -o %t.ptx
// RUN: FileCheck %s --input-file=%t.ptx
// RUN: fp8-translate --kernels-to-json %t | FileCheck %s --check-prefix=JSON

!x = tensor<8192x4096xbf16>
!one = tensor<1x1xf32>
!q = !fp8.scaled<8192x4096xf8E4M3FN, block = [*, *], scale = f32>
!t = !fp8.scaled<4096x8192xf8E4M3FN, block = [*, *], scale = f32>

// 16 bytes at once through the read-only cache, all of a thread's before the
// first is used; two elements are measured and two cast by one instruction; 16
// bytes of the transposed codes at once. Nothing spills.

// CHECK-LABEL: .visible .entry fp8_fusion_sm90a_both_
// CHECK-NOT:   .local
// CHECK:       .minnctapersm
// CHECK:       griddepcontrol.wait
// CHECK:       griddepcontrol.launch_dependents
// CHECK:       ld.global.nc{{.*}}.v4.b32
// CHECK:       cvt.rn.satfinite.e4m3x2.f32
// CHECK-NOT:   ld.global.nc{{.*}}.v4.b32
// CHECK:       st.global.v2.b32
// CHECK:       prmt.b32
// CHECK:       st.shared.b32
// CHECK:       bar{{(rier)?}}.sync
// CHECK:       ld.shared.v4.b32
// CHECK:       st.global.v4.b32
// CHECK:       redux.sync.max.u32
// CHECK:       {{atom|red}}.{{.*}}max.u32
// CHECK:       ret;

// JSON:      "fp8_fusion_sm90a_both_{{.+}}": {
// JSON-NEXT: "config": "#fp8_fusion.config<
// JSON-NEXT: "launch": {"version":2,"arguments":[{"name":"in0","type":"bf16","rank":2,"access":"read","alignment":16},
func.func @delayed(%x: !x, %s: !one, %si: !one) -> (!q, !t, !one) {
  %q = fp8.quantize %x scale(%s, %si : !one, !one) : !x -> !q
  %amax = fp8.amax %x block = [*, *] : !x
  %t = fp8.transpose %q permutation = [1, 0] : !q
  return %q, %t, %amax : !q, !t, !one
}

// E5M2 has its own instruction.

// CHECK-LABEL: .visible .entry fp8_fusion_sm90a_rows_
// CHECK-NOT:   e4m3x2
// CHECK:       cvt.rn.satfinite.e5m2x2.f32
// CHECK:       ret;
func.func @gradient(%x: !x, %s: !one, %si: !one) -> !fp8.scaled<8192x4096xf8E5M2, block = [*, *], scale = f32> {
  %q = fp8.quantize %x scale(%s, %si : !one, !one) : !x -> !fp8.scaled<8192x4096xf8E5M2, block = [*, *], scale = f32>
  return %q : !fp8.scaled<8192x4096xf8E5M2, block = [*, *], scale = f32>
}

// Scales are divided exactly, and kept from becoming subnormal zeros, beside
// functions that are approximated.

// CHECK-LABEL: .visible .entry fp8_fusion_sm90a_rows_{{(1x128_)?}}
// CHECK:       ex2.approx.ftz.f32
// CHECK:       div.rn.f32
// CHECK-NOT:   div.{{(approx|full|rn\.ftz)}}
// CHECK:       ret;
func.func @approximate(%x: !x) -> !fp8.scaled<8192x4096xf8E4M3FN, block = [1, 128], scale = f32> {
  %e = tensor.empty() : !x
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%x : !x) outs(%e : !x) {
  ^bb0(%a: bf16, %o: bf16):
    %0 = arith.extf %a : bf16 to f32
    %1 = math.exp %0 : f32
    %2 = arith.truncf %1 : f32 to bf16
    linalg.yield %2 : bf16
  } -> !x
  %amax = fp8.amax %y block = [1, 128] : !x
  %s, %si = fp8.compute_scale %amax format = f8E4M3FN scale_type = f32 : tensor<8192x32xf32>
  %q = fp8.quantize %y scale(%s, %si : tensor<8192x32xf32>, tensor<8192x32xf32>) : !x -> !fp8.scaled<8192x4096xf8E4M3FN, block = [1, 128], scale = f32>
  return %q : !fp8.scaled<8192x4096xf8E4M3FN, block = [1, 128], scale = f32>
}
