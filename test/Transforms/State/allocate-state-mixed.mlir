// RUN: rm -rf %t && split-file %s %t
// RUN: fp8-opt %t/layers.mlir --fp8-pipeline="recipe=delayed recipe-file=%t/rules.json to=scaling" | FileCheck %s

// Only what follows the recipe with state has slots: not the first and the last
// layer, which stay in high precision, nor those of other recipes.
// CHECK: fp8.state = #fp8.state_table<#fp8.delayed, [#fp8.slot<"layers.1.x" : f8E4M3FN, fprop activation>, #fp8.slot<"layers.1.w" : f8E4M3FN, fprop weight>]>
// CHECK-LABEL: func.func @layers(
// CHECK: linalg.matmul {fp8.name = "layers.0"
// CHECK: fp8.read_scale
// CHECK: fp8.read_scale
// CHECK-NOT: fp8.read_scale
// CHECK: fp8.compute_scale
// CHECK: linalg.matmul {fp8.name = "layers.3"

//--- rules.json
{"version": 1, "rules": [{"match": "layers.2", "recipe": "mxfp8"}],
 "first_layers_high_precision": 1, "last_layers_high_precision": 1}

//--- layers.mlir
!t = tensor<128x128xf32>
func.func @layers(%x: !t, %w: !t {fp8.weight}) -> !t {
  %zero = arith.constant dense<0.0> : !t
  %0 = linalg.matmul {fp8.name = "layers.0"} ins(%x, %w : !t, !t) outs(%zero : !t) -> !t
  %1 = linalg.matmul {fp8.name = "layers.1"} ins(%0, %w : !t, !t) outs(%zero : !t) -> !t
  %2 = linalg.matmul {fp8.name = "layers.2"} ins(%1, %w : !t, !t) outs(%zero : !t) -> !t
  %3 = linalg.matmul {fp8.name = "layers.3"} ins(%2, %w : !t, !t) outs(%zero : !t) -> !t
  return %3 : !t
}
