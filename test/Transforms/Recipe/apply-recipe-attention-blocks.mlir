// RUN: split-file %s %t
// RUN: fp8-opt %t/attend.mlir --fp8-annotate-gemms --fp8-apply-recipe="attention-recipe=current,block=64" --fp8-remarks=text:%t/remarks | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK < %t/remarks
// RUN: fp8-opt %t/attend.mlir --fp8-pipeline="attention-recipe=delayed,block=64 to=recipe" --fp8-remarks=text:- -o /dev/null | FileCheck %s --check-prefix=DELAYED
// RUN: fp8-opt %t/attend.mlir --fp8-pipeline="attention-recipe=current,block=64 target=sm_90a to=kernels" --fp8-fusion-report=- -o /dev/null 2>&1 | FileCheck %s --check-prefix=KERNELS
// RUN: not fp8-opt %t/attend.mlir --fp8-pipeline="attention-recipe=current,block=0 to=recipe" 2>&1 | FileCheck %s --check-prefix=ZERO
// RUN: not fp8-opt %t/wrong.mlir 2>&1 | FileCheck %s --check-prefix=WRONG

// Blocks of positions of a head have a factor each; what is smooth or rotated before has four dimensions again.
// CHECK-LABEL: @attend
// CHECK: fp8.quantize %{{.*}} recipe(#fp8.current) {fp8.name = "a.q"} : tensor<1x128x2x64xbf16> -> <1x128x2x64xf8E4M3FN, block = [1, 64, 1, *], scale = f32>
// CHECK: fp8.quantize %{{.*}} recipe(#fp8.current) {fp8.name = "a.k"}
// CHECK: fp8.quantize %{{.*}} recipe(#fp8.current) {fp8.name = "a.v"}
// CHECK: fp8.attention %{{.*}} accumulate = promote
// CHECK: linalg.matmul {fp8.name = "b.q.rotation"
// CHECK: fp8.quantize {{.*}} {fp8.name = "b.q"} : tensor<1x128x2x64xbf16> -> <1x128x2x64xf8E4M3FN, block = [1, 32, 1, *], scale = f32>
// With sums by the tensor core values have one for the tensor.
// CHECK: fp8.quantize {{.*}} {fp8.name = "c.k"} : tensor<1x2x128x64xbf16> -> <1x2x128x64xf8E4M3FN, block = [1, 1, 64, *], scale = f32>
// CHECK: fp8.quantize {{.*}} {fp8.name = "c.v"} : tensor<256x64xbf16> -> <256x64xf8E4M3FN, block = [*, *], scale = f32>
// CHECK: fp8.attention %{{.*}} accumulate = fast

// REMARK: a: fp8; role attention, {{.*}} transforms block 64
// REMARK: b: fp8; {{.*}} transforms hadamard, block 32
// REMARK: c: fp8; {{.*}} transforms block 64
// REMARK: d: fp8; {{.*}} without block: its gradient has a factor for a tensor
// DELAYED: a: fp8; {{.*}} without block: scales of other steps are of tensors: other tokens are in a block then
// KERNELS: attention {{.*}} a
// ZERO: expected a positive number of positions for key 'block' of attention's recipe, but got '0'
// WRONG: expected 'fp8.attention_recipe' to have a positive number of positions for 'block', but got true

//--- attend.mlir
!t = tensor<1x128x2x64xbf16>
!h = tensor<1x2x128x64xbf16>
!l = tensor<1x2x128xf32>
func.func @attend(%q: !t, %k: !t, %v: !t, %x: !h, %y: !h, %grad: !t, %delta: !l) -> (!t, !t, !h, !t, !t) {
  %0 = fp8.attention %q, %k, %v scale = 0.125 {fp8.name = "a"} : !t, !t, !t -> !t
  %1 = fp8.attention %q, %v, %k scale = 0.125 {fp8.name = "b", fp8.attention_recipe = {qk = #fp8.current, pv = #fp8.current, hadamard = true, block = 32}} : !t, !t, !t -> !t
  %2 = fp8.attention %x, %y, %y scale = 0.125 layout = bhsd {fp8.name = "c", fp8.attention_recipe = {qk = #fp8.current, pv = #fp8.current<accumulate = fast_fprop>, block = 64}} : !h, !h, !h -> !h
  %3, %lse = fp8.attention %k, %q, %v scale = 0.125 {fp8.name = "d"} : !t, !t, !t -> !t, !l
  %dq, %dk, %dv = fp8.attention_backward %grad, %k, %q, %v, %lse, %delta scale = 0.125 : !t, !t, !t, !t, !l, !l -> !t, !t, !t
  return %0, %1, %2, %3, %dq : !t, !t, !h, !t, !t
}
//--- wrong.mlir
func.func @wrong() attributes {fp8.attention_recipe = {qk = #fp8.current, block = true}} {
  return
}
