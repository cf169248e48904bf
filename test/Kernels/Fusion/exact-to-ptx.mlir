// RUN: fp8-opt --fp8-form-fusions --fp8-set-target=chip=sm_90a --fp8-select-kernels --fp8-build-kernels %s -o %t
// RUN: fp8-translate --kernels-to-ptx %t | FileCheck %s

#id = affine_map<(m, n) -> (m, n)>
!x = tensor<8192x4096xf32>

// An elementwise pass whose quotients are a CPU's, and one in which they are
// approximated.

// CHECK-LABEL: .visible .entry fp8_fusion
// CHECK-NOT:   div.full.f32
// CHECK:       div.rn.f32
// CHECK-NOT:   div.full.f32
// CHECK-LABEL: .visible .entry fp8_fusion
// CHECK-NOT:   div.rn.f32
// CHECK:       div.full.f32
// CHECK-NOT:   div.rn.f32
func.func @exact(%x: !x, %y: !x) -> !x attributes {fp8.exact} {
  %empty = tensor.empty() : !x
  %z = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x, %y : !x, !x) outs(%empty : !x) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %c = arith.divf %a, %b : f32
    linalg.yield %c : f32
  } -> !x
  return %z : !x
}

func.func @approximate(%x: !x, %y: !x) -> !x {
  %empty = tensor.empty() : !x
  %z = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x, %y : !x, !x) outs(%empty : !x) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %c = arith.divf %a, %b : f32
    linalg.yield %c : f32
  } -> !x
  return %z : !x
}
