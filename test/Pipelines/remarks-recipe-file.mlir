// RUN: split-file %s %t
// RUN: fp8-opt %t/program.mlir --fp8-pipeline="recipe=current recipe-file=%t/recipe.json to=recipe" --fp8-remarks=text:- -o /dev/null | FileCheck %s --check-prefix=FILE
// RUN: fp8-opt %t/program.mlir --fp8-pipeline="to=recipe" --fp8-remarks=text:- -o /dev/null | FileCheck %s --check-prefix=NONE

// FILE: {{^}}l.0: high precision; {{.*}}reason it is in one of the first or last layers, which the recipe file keeps in high precision, suggestion lower first_layers_high_precision or last_layers_high_precision in the recipe file{{$}}
// FILE-NEXT: {{^}}l.1: fp8; {{.*}}recipe rowwise{{.*}}
// FILE-NEXT: {{^}}l.2: high precision; {{.*}}reason it is in one of the first or last layers{{.*}}
// FILE-NOT: {{.}}

// NONE-COUNT-3: high precision; {{.*}}reason no recipe applies to it, suggestion give a recipe as pass option, in a recipe file or as attribute fp8.recipe{{$}}
// NONE-NOT: {{.}}

//--- recipe.json
{"version": 1, "rules": [{"match": "l.?", "recipe": "rowwise"}], "first_layers_high_precision": 1, "last_layers_high_precision": 1}
//--- program.mlir
!t = tensor<16x16xf32>
func.func @f(%x: !t) -> !t {
  %0 = linalg.matmul {fp8.name = "l.0"} ins(%x, %x : !t, !t) outs(%x : !t) -> !t
  %1 = linalg.matmul {fp8.name = "l.1"} ins(%x, %x : !t, !t) outs(%0 : !t) -> !t
  %2 = linalg.matmul {fp8.name = "l.2"} ins(%x, %x : !t, !t) outs(%1 : !t) -> !t
  return %2 : !t
}
