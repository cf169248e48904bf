// RUN: fp8-opt --fp8-form-fusions --fp8-set-target=chip=sm_90a --fp8-select-kernels --fp8-build-kernels %s -o %t
// RUN: fp8-translate --kernels-to-ptx %t | FileCheck %s --implicit-check-not=cvt.rn.bf16.f32

// PyTorch rounds after each operation. An f32 alone is rounded by the ALU, not
// by the unit of exp: with zeros beside it, so that what it is in f32 again is
// the same bits.

#id = affine_map<(i, j) -> (i, j)>
!x = tensor<8192x4096xbf16>

// The last rounding, that of the product, is one for two elements.

// CHECK: mov.b32 %[[ZERO:.+]], 0f00000000
// CHECK-NEXT: cvt.rn.bf16x2.f32 %[[R:.+]], %{{.+}}, %[[ZERO]]
// CHECK-NEXT: mul.rn.f32 %[[M:.+]], %{{.+}}, %[[R]]
// CHECK-NOT: cvt.rn.bf16x2.f32 %{{.+}}, %[[M]], %[[ZERO]]
func.func @silu_gate(%x: !x, %u: !x) -> !x {
  %e = tensor.empty() : !x
  %0 = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]} ins(%x, %u : !x, !x) outs(%e : !x) {
  ^bb0(%a: bf16, %b: bf16, %_: bf16):
    %one = arith.constant 1.0 : f32
    %f = arith.extf %a : bf16 to f32
    %n = arith.negf %f : f32
    %p = math.exp %n : f32
    %s = arith.addf %p, %one : f32
    %d = arith.divf %f, %s : f32
    %r = arith.truncf %d : f32 to bf16
    %m = arith.mulf %r, %b : bf16
    linalg.yield %m : bf16
  } -> !x
  return %0 : !x
}
