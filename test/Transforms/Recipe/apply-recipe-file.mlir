// RUN: split-file %s %t
// RUN: fp8-opt %t/layers.mlir --fp8-apply-recipe="recipe=rowwise recipe-file=%t/rules.json" | FileCheck %s --check-prefix=RULES
// RUN: fp8-opt %t/layers.mlir --fp8-apply-recipe="recipe=rowwise recipe-file=%t/ends.json" | FileCheck %s --check-prefix=ENDS
// RUN: fp8-opt %t/unnumbered.mlir --fp8-apply-recipe="recipe=rowwise recipe-file=%t/ends.json" | FileCheck %s --check-prefix=UNNUMBERED
// RUN: fp8-opt %t/layers.mlir --fp8-pipeline="recipe-file=%t/rules.json to=recipe" | FileCheck %s --check-prefix=PIPELINE
// RUN: sed 's/name = "layers.0.up"/name = "layers.0.up", fp8.role = #fp8.role<dgrad>/' %t/layers.mlir > %t/roles.mlir
// RUN: fp8-opt %t/roles.mlir --fp8-apply-recipe="recipe=rowwise recipe-file=%t/roles.json" | FileCheck %s --check-prefix=ROLES

// The first rule that matches decides, then the pass option; an attribute wins
// over both.
// RULES: linalg.contract {{.*}}fp8.name = "layers.0.up"{{.*}} fp8.recipe = #fp8.mxfp8<mode = floor>
// RULES: linalg.contract {{.*}}fp8.name = "layers.0.down"{{.*}} fp8.recipe = #fp8.current
// RULES: linalg.contract {{.*}}fp8.name = "layers.1.up"{{.*}} fp8.recipe = #fp8.mxfp8<mode = floor>
// RULES: linalg.contract {{.*}}fp8.name = "layers.2.up"{{.*}} fp8.recipe = #fp8.nvfp4
// RULES: linalg.matmul {fp8.name = "layers.2.lm_head"}
// RULES: linalg.contract {{.*}}fp8.name = "other"{{.*}} fp8.recipe = #fp8.rowwise

// The first and the last layer stay, but not against an attribute; what has no
// number is in no layer.
// ENDS: linalg.matmul {fp8.name = "layers.0.up"}
// ENDS: linalg.matmul {fp8.name = "layers.0.down"}
// ENDS: linalg.contract {{.*}}fp8.name = "layers.1.up"{{.*}} fp8.recipe = #fp8.rowwise
// ENDS: linalg.contract {{.*}}fp8.name = "layers.2.up"{{.*}} fp8.recipe = #fp8.nvfp4
// ENDS: linalg.matmul {fp8.name = "layers.2.lm_head"}
// ENDS: linalg.contract {{.*}}fp8.name = "other"{{.*}} fp8.recipe = #fp8.rowwise

// Without any number every contraction is a layer.
// UNNUMBERED: linalg.matmul {fp8.name = "a"}
// UNNUMBERED: linalg.contract {{.*}}fp8.name = "b"
// UNNUMBERED: linalg.matmul {fp8.name = "c"}

// A rule with a role is for it alone.
// ROLES: linalg.contract {{.*}}fp8.name = "layers.0.up"{{.*}} fp8.recipe = #fp8.mxfp8, fp8.role = #fp8.role<dgrad>
// ROLES: linalg.contract {{.*}}fp8.name = "layers.0.down"{{.*}} fp8.recipe = #fp8.current

// PIPELINE: fp8.recipe = #fp8.mxfp8<mode = floor>

//--- rules.json
{
  "version": 1,
  "rules": [
    {"match": "*.lm_head", "recipe": "none"},
    {"match": "*.{up,gate}", "recipe": "mxfp8,mode=floor"},
    {"match": "layers.[0-9].*", "recipe": "current"},
    {"match": "*.up", "recipe": "none"}
  ]
}
//--- roles.json
{"version": 1, "rules": [{"role": "attention.*", "recipe": "none"}, {"role": "dgrad", "recipe": "mxfp8"}, {"match": "*", "recipe": "current"}]}
//--- ends.json
{"version": 1, "first_layers_high_precision": 1, "last_layers_high_precision": 1}
//--- layers.mlir
!t = tensor<128x128xf32>
func.func @f(%x: !t) -> !t {
  %0 = linalg.matmul {fp8.name = "layers.0.up"} ins(%x, %x : !t, !t) outs(%x : !t) -> !t
  %1 = linalg.matmul {fp8.name = "layers.0.down"} ins(%x, %x : !t, !t) outs(%0 : !t) -> !t
  %2 = linalg.matmul {fp8.name = "layers.1.up"} ins(%x, %x : !t, !t) outs(%1 : !t) -> !t
  %3 = linalg.matmul {fp8.name = "layers.2.up", fp8.recipe = #fp8.nvfp4} ins(%x, %x : !t, !t) outs(%2 : !t) -> !t
  %4 = linalg.matmul {fp8.name = "layers.2.lm_head"} ins(%x, %x : !t, !t) outs(%3 : !t) -> !t
  %5 = linalg.matmul {fp8.name = "other"} ins(%x, %x : !t, !t) outs(%4 : !t) -> !t
  return %5 : !t
}
//--- unnumbered.mlir
!t = tensor<128x128xf32>
func.func @f(%x: !t) -> !t {
  %0 = linalg.matmul {fp8.name = "a"} ins(%x, %x : !t, !t) outs(%x : !t) -> !t
  %1 = linalg.matmul {fp8.name = "b"} ins(%x, %x : !t, !t) outs(%0 : !t) -> !t
  %2 = linalg.matmul {fp8.name = "c"} ins(%x, %x : !t, !t) outs(%1 : !t) -> !t
  return %2 : !t
}
