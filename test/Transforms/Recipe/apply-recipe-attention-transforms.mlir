// RUN: split-file %s %t
// RUN: fp8-opt %t/attend.mlir --fp8-annotate-gemms --fp8-apply-recipe="attention-recipe=delayed,hadamard=true" | FileCheck %s --check-prefix=ROTATED
// RUN: fp8-opt %t/attend.mlir --fp8-annotate-gemms --fp8-apply-recipe="attention-recipe=delayed,smooth-k=true" | FileCheck %s --check-prefix=SMOOTH
// RUN: fp8-opt %t/attend.mlir --fp8-pipeline="attention-recipe=current,smooth_k=true,hadamard=true to=recipe" --fp8-remarks=text:- -o /dev/null | FileCheck %s --check-prefix=BOTH
// RUN: fp8-opt %t/attend.mlir --fp8-pipeline="recipe-file=%t/rules.json to=recipe" --fp8-remarks=text:- -o /dev/null | FileCheck %s --check-prefix=RULES
// RUN: fp8-opt %t/attend.mlir --fp8-pipeline="attention-recipe=delayed,hadamard=true target=sm_90a to=kernels" --fp8-fusion-report=- -o /dev/null 2>&1 | FileCheck %s --check-prefix=KERNELS
// RUN: fp8-opt %t/attend.mlir --fp8-pipeline="attention-recipe=delayed,smooth_k=true target=sm_90a to=kernels" --fp8-fusion-report=- -o /dev/null 2>&1 | FileCheck %s --check-prefix=PASSES
// RUN: fp8-opt %t/others.mlir --fp8-apply-recipe="attention-recipe=current,smooth_k=true,hadamard=true" --fp8-remarks=text:- -o /dev/null | FileCheck %s --check-prefix=OTHERS
// RUN: fp8-opt %t/attributes.mlir --fp8-apply-recipe="attention-recipe=current,smooth_k=true" --fp8-remarks=text:- -o /dev/null | FileCheck %s --check-prefix=ATTRIBUTES
// RUN: not fp8-opt %t/attend.mlir --fp8-pipeline="attention-recipe=current,hadamard=yes to=recipe" 2>&1 | FileCheck %s --check-prefix=YES
// RUN: not fp8-opt %t/attend.mlir --fp8-pipeline="recipe=current,smooth_k=true to=recipe" 2>&1 | FileCheck %s --check-prefix=LAYERS
// RUN: not fp8-opt %t/attend.mlir --fp8-pipeline="recipe-file=%t/wrong.json to=recipe" 2>&1 | FileCheck %s --check-prefix=RULE
// RUN: not fp8-opt %t/wrong.mlir 2>&1 | FileCheck %s --check-prefix=WRONG

// Rows times a matrix become codes, those of Q and K by factors that together are 1 / 64; gradients are rotated back.
// ROTATED-LABEL: @attend
// ROTATED: %[[ROWS:.*]] = tensor.collapse_shape %arg0 {{\[\[}}0, 1, 2], [3]]
// ROTATED: %[[Q:.*]] = linalg.matmul {fp8.name = "layers.0.attention.q.rotation", fp8.recipe = #fp8.none} ins(%[[ROWS]], %{{.*}} : tensor<64x64xbf16>, tensor<64x64xbf16>)
// ROTATED: %[[NARROW:.*]] = linalg.generic {{.*}} ins(%[[Q]]
// ROTATED: fp8.quantize %[[NARROW]] recipe(#fp8.delayed) {fp8.name = "layers.0.attention.q"}
// ROTATED: linalg.matmul {fp8.name = "layers.0.attention.k.rotation"
// ROTATED-NOT: v.rotation
// ROTATED: fp8.attention %{{.*}} accumulate = promote
// ROTATED: %[[DQ:.*]], %[[DK:.*]], %[[DV:.*]] = fp8.attention_backward
// ROTATED: %[[ROWS_OF_K:.*]] = tensor.collapse_shape %[[DK]]
// ROTATED: %[[BACK:.*]] = linalg.matmul {fp8.name = "layers.0.attention.dk.rotation", fp8.recipe = #fp8.none} ins(%[[ROWS_OF_K]],
// ROTATED: return %{{.*}}, %{{.*}}, %{{.*}}, %[[DV]]

// A mean is of what lies over positions; the gradient has none of its own.
// SMOOTH-LABEL: @attend
// SMOOTH: fp8.quantize %{{.*}} {fp8.name = "layers.0.attention.q"}
// SMOOTH: %[[K:.*]] = tensor.collapse_shape %arg1 {{\[\[}}0], [1], [2, 3]] : tensor<1x32x2x64xbf16> into tensor<1x32x128xbf16>
// SMOOTH: %[[SUMS:.*]] = linalg.generic {{.*}} iterator_types = ["parallel", "reduction", "parallel"]} ins(%[[K]] : tensor<1x32x128xbf16>)
// SMOOTH: %[[LESS:.*]] = linalg.generic {{.*}} ins(%[[K]], %[[SUMS]] :
// SMOOTH: fp8.quantize %[[LESS]] recipe(#fp8.delayed) {fp8.name = "layers.0.attention.k"} : tensor<1x32x128xbf16> -> <1x32x128xf8E4M3FN, block = [*, *, *], scale = f32>
// SMOOTH: %[[DQ:.*]], %[[DK:.*]], %[[DV:.*]] = fp8.attention_backward
// SMOOTH: return %{{.*}}, %[[DQ]], %[[DK]], %[[DV]]

// BOTH: layers.0.attention: fp8; role attention, {{.*}} recipe current, {{.*}} transforms smooth_k, hadamard,
// RULES: layers.0.attention: fp8; role attention, {{.*}} recipe current, {{.*}} transforms hadamard,

// A kernel reads queries once: the product's epilogue has the codes and the amax.
// KERNELS: 1 matmul {{.*}} layers.0.attention.q.rotation
// KERNELS-NEXT: 2 matmul {{.*}} layers.0.attention.k.rotation
// KERNELS-NEXT: 3 fusion {{.*}} quantize amax of arg2 for layers.0.attention
// KERNELS-NEXT: 4 attention
// KERNELS-NEXT: 5 attention_backward {{.*}} layers.0.attention.q.rotation's 64x64xf8E4M3FN
// KERNELS-NEXT: 6 matmul {{.*}} layers.0.attention.dq.rotation; layers.0.attention.dk.rotation
// The pass that takes a mean away quantizes.
// PASSES: fusion {{.*}} quantize amax of arg0
// PASSES-NEXT: fusion {{.*}} reduction elementwise quantize amax of arg1

// OTHERS: cap: fp8; {{.*}} transforms hadamard, without smooth_k: a cap bends scores themselves, not their differences
// OTHERS: sinks: fp8; {{.*}} without smooth_k: a sink is a score of no key
// OTHERS: sums: fp8; {{.*}} without smooth_k: logarithms of sums, which it changes, are used elsewhere
// OTHERS: saved: fp8; {{.*}} without smooth_k: a gradient has other logarithms of sums

// ATTRIBUTES: a: fp8; {{.*}} transforms hadamard,
// ATTRIBUTES: b: fp8; {{.*}} transforms smooth_k,
// ATTRIBUTES: c: fp8;
// ATTRIBUTES-NOT: transforms

// YES: expected true or false for key 'hadamard' of attention's recipe, but got 'yes'
// LAYERS: unknown key 'smooth_k' of recipe 'current'
// RULE: recipe file '{{.*}}': rule 0: unknown key 'hadamard' of recipe 'current'
// WRONG: expected 'fp8.attention_recipe' to have true or false for 'smooth_k', but got 1

//--- attend.mlir
!t = tensor<1x32x2x64xbf16>
!l = tensor<1x2x32xf32>
func.func @attend(%q: !t, %k: !t, %v: !t, %grad: !t, %delta: !l) -> (!t, !t, !t, !t) {
  %o, %lse = fp8.attention %q, %k, %v scale = 0.125 {fp8.name = "layers.0.attention"} : !t, !t, !t -> !t, !l
  %dq, %dk, %dv = fp8.attention_backward %grad, %q, %k, %v, %lse, %delta scale = 0.125 : !t, !t, !t, !t, !l, !l -> !t, !t, !t
  return %o, %dq, %dk, %dv : !t, !t, !t, !t
}
//--- others.mlir
!t = tensor<1x32x2x64xbf16>
!l = tensor<1x2x32xf32>
func.func @others(%q: !t, %k: !t, %v: !t, %s: tensor<2xf32>, %grad: !t, %saved: !l) -> (!t, !t, !t, !l, !t, !t) {
  %0 = fp8.attention %q, %k, %v scale = 0.125 cap = 30.0 {fp8.name = "cap"} : !t, !t, !t -> !t
  %1 = fp8.attention %q, %k, %v sinks(%s : tensor<2xf32>) scale = 0.125 {fp8.name = "sinks"} : !t, !t, !t -> !t
  %2, %lse = fp8.attention %q, %v, %k scale = 0.125 {fp8.name = "sums"} : !t, !t, !t -> !t, !l
  %3 = fp8.attention %k, %q, %v scale = 0.125 {fp8.name = "saved"} : !t, !t, !t -> !t
  %dq, %dk, %dv = fp8.attention_backward %grad, %k, %q, %v, %saved, %saved scale = 0.125 : !t, !t, !t, !t, !l, !l -> !t, !t, !t
  return %0, %1, %2, %lse, %3, %dq : !t, !t, !t, !l, !t, !t
}
//--- attributes.mlir
!t = tensor<1x32x2x64xbf16>
func.func @attributes(%q: !t, %k: !t, %v: !t) -> (!t, !t, !t) {
  %0 = fp8.attention %q, %k, %v scale = 0.125 {fp8.name = "a", fp8.attention_recipe = {qk = #fp8.current, pv = #fp8.current, hadamard = true}} : !t, !t, !t -> !t
  %1 = fp8.attention %q, %k, %v scale = 0.125 {fp8.name = "b"} : !t, !t, !t -> !t
  %2 = fp8.attention %q, %k, %v scale = 0.125 {fp8.name = "c", fp8.attention_recipe = #fp8.current} : !t, !t, !t -> !t
  return %0, %1, %2 : !t, !t, !t
}
//--- wrong.mlir
func.func @wrong() attributes {fp8.attention_recipe = {qk = #fp8.current, smooth_k = 1 : i32}} {
  return
}
//--- rules.json
{"version": 1, "rules": [{"role": "attention.*", "match": "layers.0.*", "recipe": "current,hadamard=true"}]}
//--- wrong.json
{"version": 1, "rules": [{"match": "*", "recipe": "current,hadamard=true"}]}
