// RUN: split-file %s %t
// RUN: fp8-opt %t/attend.mlir --fp8-annotate-gemms --fp8-apply-recipe="attention-recipe=delayed" | FileCheck %s
// RUN: fp8-opt %t/attend.mlir --fp8-pipeline="recipe=current attention-recipe=delayed to=scaling" | FileCheck %s --check-prefix=STATE
// RUN: fp8-opt %t/attend.mlir --fp8-pipeline="recipe=current to=recipe" --fp8-remarks=text:- -o /dev/null | FileCheck %s --check-prefix=NONE
// RUN: fp8-opt %t/attend.mlir --fp8-pipeline="attention-recipe=mxfp8 to=recipe" --fp8-remarks=text:- -o /dev/null | FileCheck %s --check-prefix=BLOCKS
// RUN: fp8-opt %t/attend.mlir --fp8-pipeline="attention-recipe=current recipe-file=%t/rules.json to=recipe" --fp8-remarks=text:- -o /dev/null | FileCheck %s --check-prefix=RULES
// RUN: not fp8-opt %t/attend.mlir --fp8-pipeline="attention-recipe=current invariant to=recipe" 2>&1 | FileCheck %s --check-prefix=OTHERS
// RUN: not fp8-opt %t/half.mlir --fp8-apply-recipe="recipe-file=%t/half.json require" 2>&1 | FileCheck %s --check-prefix=HALF
// RUN: not fp8-opt %t/invariant.mlir --fp8-apply-recipe 2>&1 | FileCheck %s --check-prefix=PV
// RUN: not fp8-opt %t/attend.mlir --fp8-pipeline="attention-recipe=fp9 to=recipe" 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// RUN: fp8-opt %t/attributes.mlir --fp8-apply-recipe="attention-recipe=none" --fp8-remarks=text:- -o /dev/null | FileCheck %s --check-prefix=ATTRIBUTES
// RUN: fp8-opt %t/caches.mlir --fp8-apply-recipe="attention-recipe=current" --fp8-remarks=text:- -o /dev/null | FileCheck %s --check-prefixes=CACHES,MEASURED
// RUN: fp8-opt %t/caches.mlir --fp8-apply-recipe="attention-recipe=delayed" --fp8-remarks=text:- -o /dev/null | FileCheck %s --check-prefixes=CACHES,MEASURED
// RUN: fp8-opt %t/caches.mlir --fp8-apply-recipe="attention-recipe=static,state=saved" --fp8-remarks=text:- -o /dev/null | FileCheck %s --check-prefixes=CACHES,KNOWN

// Q, K and V get codes of one factor, with slots of their own; the gradient of the same tensors is of the codes.
// CHECK-LABEL: @attend
// CHECK: %[[ROWS:.*]] = tensor.collapse_shape %arg0 {{\[\[}}0, 1, 2], [3]] : tensor<1x32x2x64xbf16> into tensor<64x64xbf16>
// CHECK: %[[Q:.*]] = fp8.quantize %[[ROWS]] recipe(#fp8.delayed) {fp8.name = "layers.0.attention.q"} : tensor<64x64xbf16> -> <64x64xf8E4M3FN, block = [*, *], scale = f32>
// CHECK: %[[CODES:.*]], %{{.*}} = fp8.disassemble %[[Q]]
// CHECK: %[[WIDE:.*]] = tensor.expand_shape %[[CODES]] {{\[\[}}0, 1, 2], [3]] output_shape [1, 32, 2, 64]
// CHECK: %[[Q4:.*]] = fp8.assemble %[[WIDE]], {{.*}} -> <1x32x2x64xf8E4M3FN, block = [*, *, *, *], scale = f32>
// CHECK: fp8.quantize {{.*}} {fp8.name = "layers.0.attention.k"}
// CHECK: fp8.quantize {{.*}} {fp8.name = "layers.0.attention.v"}
// CHECK: fp8.attention %[[Q4]], {{.*}} accumulate = promote {fp8.name = "layers.0.attention", fp8.recipe = #fp8.delayed}
// CHECK: fp8.attention_backward %arg3, %[[Q4]],
// What is in codes stays.
// CHECK-LABEL: @codes
// CHECK-NOT: fp8.quantize
// CHECK: fp8.attention %arg0

// STATE: #fp8.slot<"layers.0.attention.q" : f8E4M3FN, fprop activation>, #fp8.slot<"layers.0.attention.k" : f8E4M3FN, fprop activation>, #fp8.slot<"layers.0.attention.v" : f8E4M3FN, fprop activation>

// NONE: layers.0.attention: high precision; role attention, shape batch=1 heads=2 queries=32 keys=32 columns=64, recipe none, reason no recipe for attention applies to it, and those of linear layers are not for it, suggestion give one as attention-recipe, in a rule with a role in a recipe file or as attribute fp8.attention_recipe
// BLOCKS: layers.0.attention: high precision; {{.*}} recipe mxfp8, reason attention has 8 bits with one f32 scale for a tensor, but mxfp8 has f8E4M3FN[1x32]f8E8M0FNU, suggestion use current, delayed or static for it
// RULES: layers.0.attention: high precision; {{.*}} reason its recipe is none
// OTHERS: error: expected 'layers.0.attention' to have scales that depend on one row in an invariant program, but current has one for all rows
// HALF: error: expected 'half' to be in FP8, but attention.qk has the recipe none and attention.pv current, and its operands are codes all or none; give both a recipe
// PV: error: expected 'pv' to have scales that depend on one row in an invariant program, but current has one for all rows
// UNKNOWN: expected a recipe (current, {{.*}}), but got 'fp9'

// ATTRIBUTES: a: fp8; role attention, {{.*}} recipe current, a f8E4M3FN[*x*]f32
// ATTRIBUTES: b: high precision; {{.*}} reason attention.qk has the recipe current and attention.pv none, and its operands are codes all or none, suggestion give both a recipe
// ATTRIBUTES: c: high precision; {{.*}} reason its recipe is none
// ATTRIBUTES: d: fp8; role attention, {{.*}} recipe current

// What lies behind a cache's keys is no part of an amax, and pages are of others, too.
// MEASURED: lengths: high precision; {{.*}} reason its amax would be that of all keys, and those beyond key_lengths or before key_starts are anything, suggestion use static for it
// MEASURED: starts: high precision; {{.*}} reason its amax would be that of all keys
// KNOWN: lengths: fp8; role attention, {{.*}} recipe static
// KNOWN: starts: fp8; role attention, {{.*}} recipe static
// CACHES: pages: high precision; {{.*}} reason its keys are pages, of which each call would quantize all, whoever has them, suggestion keep the cache in codes

//--- caches.mlir
!t = tensor<2x32x2x64xbf16>
!p = tensor<16x16x2x64xbf16>
!n = tensor<2xi32>
func.func @caches(%q: !t, %k: !t, %pages: !p, %n: !n, %table: tensor<2x4xi32>) -> (!t, !t, !t) {
  %0 = fp8.attention %q, %k, %k key_lengths(%n : !n) scale = 0.125 {fp8.name = "lengths"} : !t, !t, !t -> !t
  %1 = fp8.attention %q, %k, %k key_starts(%n : !n) scale = 0.125 {fp8.name = "starts"} : !t, !t, !t -> !t
  %2 = fp8.attention %q, %pages, %pages key_lengths(%n : !n) page_table(%table : tensor<2x4xi32>) scale = 0.125 {fp8.name = "pages"} : !t, !p, !p -> !t
  return %0, %1, %2 : !t, !t, !t
}
//--- attend.mlir
!t = tensor<1x32x2x64xbf16>
!l = tensor<1x2x32xf32>
func.func @attend(%q: !t, %k: !t, %v: !t, %grad: !t, %delta: !l) -> (!t, !t, !t, !t) {
  %o, %lse = fp8.attention %q, %k, %v scale = 0.125 {fp8.name = "layers.0.attention"} : !t, !t, !t -> !t, !l
  %dq, %dk, %dv = fp8.attention_backward %grad, %q, %k, %v, %lse, %delta scale = 0.125 : !t, !t, !t, !t, !l, !l -> !t, !t, !t
  return %o, %dq, %dk, %dv : !t, !t, !t, !t
}
!c = !fp8.scaled<1x32x2x64xf8E4M3FN, block = [*, *, *, *], scale = f32>
func.func @codes(%q: !c, %k: !c, %v: !c) -> !t {
  %o = fp8.attention %q, %k, %v scale = 0.125 : !c, !c, !c -> !t
  return %o : !t
}
//--- rules.json
{"version": 1, "rules": [{"match": "*", "recipe": "rowwise"}, {"role": "attention.*", "match": "layers.0.*", "recipe": "none"}]}
//--- half.json
{"version": 1, "rules": [{"role": "attention.qk", "recipe": "none"}, {"role": "attention.pv", "recipe": "current"}]}
//--- half.mlir
!t = tensor<1x32x2x64xbf16>
func.func @half(%x: !t, %y: !t, %z: !t) -> !t {
  %0 = fp8.attention %x, %y, %z scale = 0.125 {fp8.name = "half"} : !t, !t, !t -> !t
  return %0 : !t
}
//--- invariant.mlir
!t = tensor<1x32x2x64xbf16>
func.func @pv(%x: !t, %y: !t, %z: !t) -> !t attributes {fp8.invariant, fp8.attention_recipe = {qk = #fp8.static<state = "m">, pv = #fp8.current}} {
  %0 = fp8.attention %x, %y, %z scale = 0.125 {fp8.name = "pv"} : !t, !t, !t -> !t
  return %0 : !t
}
//--- attributes.mlir
!t = tensor<1x32x2x64xbf16>
func.func @f(%x: !t, %y: !t, %z: !t) -> (!t, !t) attributes {fp8.recipe = #fp8.mxfp8, fp8.attention_recipe = #fp8.current} {
  %0 = fp8.attention %x, %y, %z scale = 0.125 {fp8.name = "a"} : !t, !t, !t -> !t
  %1 = fp8.attention %x, %y, %z scale = 0.125 {fp8.name = "b", fp8.attention_recipe = {pv = #fp8.none}} : !t, !t, !t -> !t
  return %0, %1 : !t, !t
}
func.func @g(%x: !t, %y: !t, %z: !t) -> (!t, !t) attributes {fp8.recipe = #fp8.current} {
  %0 = fp8.attention %x, %y, %z scale = 0.125 {fp8.name = "c"} : !t, !t, !t -> !t
  %1 = fp8.attention %x, %y, %z scale = 0.125 {fp8.name = "d", fp8.recipe = #fp8.current} : !t, !t, !t -> !t
  return %0, %1 : !t, !t
}
