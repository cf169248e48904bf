// RUN: fp8-opt %s --fp8-apply-recipe=recipe=current,accumulate=fast_fprop | FileCheck %s
// RUN: fp8-opt %s --fp8-apply-recipe=recipe=rowwise,accumulate=fast_fprop | FileCheck %s
// RUN: fp8-opt %s --fp8-apply-recipe=recipe=delayed,accumulate=fast_fprop | FileCheck %s
// RUN: fp8-opt %s --fp8-apply-recipe='recipe=static,state=s.safetensors,accumulate=fast_fprop' | FileCheck %s
// RUN: fp8-opt %s --fp8-apply-recipe=recipe=current,accumulate=fast | FileCheck %s --check-prefix=FAST
// RUN: fp8-opt %s --fp8-apply-recipe=recipe=rowwise,accumulate=fast | FileCheck %s --check-prefix=FAST
// RUN: fp8-opt %s --fp8-apply-recipe=recipe=delayed,accumulate=fast | FileCheck %s --check-prefix=FAST
// RUN: fp8-opt %s --fp8-apply-recipe='recipe=static,state=s.safetensors,accumulate=fast' | FileCheck %s --check-prefix=FAST
// RUN: fp8-opt %s --fp8-apply-recipe=recipe=current | FileCheck %s --check-prefix=PROMOTE
// RUN: fp8-opt %s --fp8-apply-recipe=recipe=rowwise | FileCheck %s --check-prefix=PROMOTE
// RUN: fp8-opt %s --fp8-apply-recipe=recipe=delayed | FileCheck %s --check-prefix=PROMOTE
// RUN: fp8-opt %s --fp8-apply-recipe='recipe=static,state=s.safetensors' | FileCheck %s --check-prefix=PROMOTE

// The accumulator of each GEMM, by what it computes, whichever operand comes
// first. A recipe's choice is that of all, or of the forward.

!x = tensor<32x64xbf16>
!w = tensor<64x16xbf16>
!y = tensor<32x16xf32>

// CHECK-LABEL: func.func @fprop
// CHECK:       linalg.contract
// CHECK-SAME:  fp8.accumulate = #fp8<accumulate fast>
// CHECK-SAME:  fp8.role = #fp8.role<fprop>
// FAST-LABEL:  func.func @fprop
// FAST:        fp8.accumulate = #fp8<accumulate fast>
// PROMOTE-LABEL: func.func @fprop
// PROMOTE:     fp8.accumulate = #fp8<accumulate promote>
func.func @fprop(%x: !x, %w: !w {fp8.weight}, %c: !y) -> !y {
  %0 = linalg.matmul ins(%x, %w : !x, !w) outs(%c : !y) -> !y
  return %0 : !y
}

// CHECK-LABEL: func.func @weight_first
// CHECK:       fp8.accumulate = #fp8<accumulate fast>
// CHECK-SAME:  fp8.role = #fp8.role<fprop>
func.func @weight_first(%w: !x {fp8.weight}, %x: !w, %c: !y) -> !y {
  %0 = linalg.matmul ins(%w, %x : !x, !w) outs(%c : !y) -> !y
  return %0 : !y
}

// CHECK-LABEL: func.func @dgrad
// CHECK:       fp8.accumulate = #fp8<accumulate promote>
// CHECK-SAME:  fp8.role = #fp8.role<dgrad>
// FAST-LABEL:  func.func @dgrad
// FAST:        fp8.accumulate = #fp8<accumulate fast>
// PROMOTE-LABEL: func.func @dgrad
// PROMOTE:     fp8.accumulate = #fp8<accumulate promote>
func.func @dgrad(%dy: !x {fp8.grad}, %w: !w {fp8.weight}, %c: !y) -> !y {
  %0 = linalg.matmul ins(%dy, %w : !x, !w) outs(%c : !y) -> !y
  return %0 : !y
}

// CHECK-LABEL: func.func @wgrad
// CHECK:       fp8.accumulate = #fp8<accumulate promote>
// CHECK-SAME:  fp8.role = #fp8.role<wgrad>
// FAST-LABEL:  func.func @wgrad
// FAST:        fp8.accumulate = #fp8<accumulate fast>
// PROMOTE-LABEL: func.func @wgrad
// PROMOTE:     fp8.accumulate = #fp8<accumulate promote>
func.func @wgrad(%dy: !x {fp8.grad}, %x: !w, %v: !w {fp8.weight}, %c: !y) -> !y {
  %0 = linalg.matmul ins(%dy, %x : !x, !w) outs(%c : !y) -> !y
  return %0 : !y
}
