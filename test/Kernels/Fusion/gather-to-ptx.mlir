// RUN: fp8-opt --fp8-form-fusions --fp8-set-target=chip=sm_90a --fp8-select-kernels --fp8-build-kernels %s -o %t
// RUN: fp8-translate --kernels-to-ptx %t -o %t.ptx
// RUN: FileCheck %s --input-file=%t.ptx
// RUN: fp8-translate --kernels-to-json %t | FileCheck %s --check-prefix=JSON

#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>

// Indices first, all of a thread's rows; an index that is none stops the kernel
// before anything is read by it. The bits stay what they are.

// CHECK-LABEL: .visible .entry fp8_fusion_sm90a_rows_
// CHECK-COUNT-2: ld.global.nc.s32
// CHECK-NOT:   ld.global
// CHECK:       setp.{{.*}}u64 %[[INSIDE:p[0-9]+]]
// CHECK-NEXT:  @%[[INSIDE]] bra
// CHECK-COUNT-2: ld.global.nc.v4.b32
// CHECK-NOT:   cvt.rn.bf16
// CHECK:       st.global.v4.b32
// CHECK:       ret;
// CHECK:       trap;

// JSON:      "arguments":[{"name":"in0","type":"u32","rank":1,"access":"read","alignment":4},{"name":"in1","type":"bf16","rank":2,"access":"read","alignment":16},
func.func @embedding(%t: tensor<1000x512xbf16>, %ids: tensor<256xi32>) -> tensor<256x512xbf16> {
  %e = tensor.empty() : tensor<256x512xbf16>
  %y = linalg.generic {indexing_maps = [#row, #id], iterator_types = ["parallel", "parallel"]} ins(%ids : tensor<256xi32>) outs(%e : tensor<256x512xbf16>) {
  ^bb0(%i: i32, %o: bf16):
    %r = arith.index_cast %i : i32 to index
    %c = linalg.index 1 : index
    %v = tensor.extract %t[%r, %c] : tensor<1000x512xbf16>
    linalg.yield %v : bf16
  } -> tensor<256x512xbf16>
  return %y : tensor<256x512xbf16>
}

// Rows that start anywhere, of an unknown number; those beyond the last have its
// index.

// CHECK-LABEL: .visible .entry fp8_fusion_sm90a_rows_
// CHECK:       min.u32
// CHECK:       ld.global.nc.b32
// CHECK:       setp.{{.*}}u64
// CHECK-NOT:   ld.global{{.*}}.v
// CHECK:       ld.global.nc.b16
func.func @odd(%t: tensor<?x131xbf16>, %ids: tensor<?xi64>) -> tensor<?x131xbf16> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %ids, %c0 : tensor<?xi64>
  %e = tensor.empty(%n) : tensor<?x131xbf16>
  %y = linalg.generic {indexing_maps = [#row, #id], iterator_types = ["parallel", "parallel"]} ins(%ids : tensor<?xi64>) outs(%e : tensor<?x131xbf16>) {
  ^bb0(%i: i64, %o: bf16):
    %r = arith.index_cast %i : i64 to index
    %c = linalg.index 1 : index
    %v = tensor.extract %t[%r, %c] : tensor<?x131xbf16>
    linalg.yield %v : bf16
  } -> tensor<?x131xbf16>
  return %y : tensor<?x131xbf16>
}
