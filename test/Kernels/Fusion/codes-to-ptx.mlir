// RUN: fp8-opt --fp8-form-fusions --fp8-set-target=chip=sm_90a --fp8-select-kernels --fp8-build-kernels %s -o %t
// RUN: fp8-translate --kernels-to-ptx %t -o %t.ptx
// RUN: FileCheck %s --input-file=%t.ptx
// RUN: fp8-translate --kernels-to-json %t | FileCheck %s --check-prefix=JSON

!x = tensor<8192x4096xbf16>
!q = !fp8.scaled<8192x4096xf8E4M3FN, block = [*, *], scale = f32>
!mx = !fp8.scaled<8192x4096xf8E5M2, block = [1, 32], scale = f8E8M0FNU>

// 8 codes at once, of each of a thread's rows, before the first is converted, two
// at once; 16 bytes of bf16. A product is no part of a sum.

// CHECK-LABEL: .visible .entry fp8_fusion_sm90a_rows_
// CHECK-NOT:   .local
// CHECK-COUNT-4: ld.global.nc.v2.b32
// CHECK:       cvt.rn.f16x2.e4m3x2
// CHECK-NOT:   ld.global.nc.v2.b32
// CHECK-NOT:   fma.rn.f32
// CHECK:       mul.rn.f32
// CHECK:       cvt.rn.bf16x2.f32
// CHECK:       st.global.v4.b32
// CHECK:       ret;

// JSON:      "fp8_fusion_sm90a_rows_{{.+}}": {
// JSON-NEXT: "config": "#fp8_fusion.config<
// JSON-NEXT: "launch": {"version":2,"arguments":[{"name":"in0","type":"u8","rank":2,"access":"read","alignment":8},{"name":"in1","type":"f32","rank":2,"access":"read","alignment":4}
func.func @dequantize(%q: !q) -> !x {
  %x = fp8.dequantize %q : !q -> !x
  return %x : !x
}

// Exponents are a byte each, one for a chunk; 0 and 255 are others than those of
// f32.

// CHECK-LABEL: .visible .entry fp8_fusion_sm90a_rows_
// CHECK-COUNT-4: ld.global.nc.v2.b32
// CHECK:       ld.global.nc.b8
// CHECK:       shl.b32 %{{.+}}, %{{.+}}, 23;
// CHECK:       cvt.rn.f16x2.e5m2x2
// CHECK:       ret;
func.func @exponents(%q: !mx) -> !x {
  %x = fp8.dequantize %q : !mx -> !x
  return %x : !x
}

// Rows that start anywhere have single codes; four bytes, a row of 4 n.

// CHECK-LABEL: .visible .entry fp8_fusion_sm90a_rows_
// CHECK-NOT:   ld.global{{.*}}.v
// CHECK:       ld.global.nc.b8
// CHECK-NOT:   ld.global{{.*}}.v
// CHECK:       ret;
func.func @odd(%q: !fp8.scaled<77x131xf8E4M3FN, block = [*, *], scale = f32>) -> tensor<77x131xbf16> {
  %x = fp8.dequantize %q : !fp8.scaled<77x131xf8E4M3FN, block = [*, *], scale = f32> -> tensor<77x131xbf16>
  return %x : tensor<77x131xbf16>
}

// CHECK-LABEL: .visible .entry fp8_fusion_sm90a_rows_
// CHECK-NOT:   ld.global{{.*}}.v
// CHECK:       ld.global.nc.b32
// CHECK-NOT:   ld.global{{.*}}.v
// CHECK:       st.global.v2.b32
// CHECK:       ret;
func.func @words(%q: !fp8.scaled<77x132xf8E4M3FN, block = [*, *], scale = f32>) -> tensor<77x132xbf16> {
  %x = fp8.dequantize %q : !fp8.scaled<77x132xf8E4M3FN, block = [*, *], scale = f32> -> tensor<77x132xbf16>
  return %x : tensor<77x132xbf16>
}

// A copy in the other order is of the codes that were read.

// CHECK-LABEL: .visible .entry fp8_fusion_sm90a_both_
// CHECK:       ld.global.nc.v2.b32
// CHECK:       prmt.b32
// CHECK:       st.shared
// CHECK-NOT:   ld.global.nc.v2.b32
// CHECK:       ld.shared.v4.b32
// CHECK:       st.global.v4.b32
// CHECK:       ret;
func.func @copied(%q: !q) -> (!x, !fp8.scaled<4096x8192xf8E4M3FN, block = [*, *], scale = f32>) {
  %x = fp8.dequantize %q : !q -> !x
  %t = fp8.transpose %q permutation = [1, 0] : !q
  return %x, %t : !x, !fp8.scaled<4096x8192xf8E4M3FN, block = [*, *], scale = f32>
}
