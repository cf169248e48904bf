// RUN: split-file %s %t
// RUN: not fp8-opt %t/program.mlir --fp8-apply-recipe=recipe-file=%t/absent.json 2>&1 | FileCheck %s --check-prefix=ABSENT
// RUN: not fp8-opt %t/program.mlir --fp8-apply-recipe=recipe-file=%t/syntax.json 2>&1 | FileCheck %s --check-prefix=SYNTAX
// RUN: not fp8-opt %t/program.mlir --fp8-apply-recipe=recipe-file=%t/twice.json 2>&1 | FileCheck %s --check-prefix=TWICE
// RUN: not fp8-opt %t/program.mlir --fp8-apply-recipe=recipe-file=%t/twice-escaped.json 2>&1 | FileCheck %s --check-prefix=ESCAPED
// RUN: not fp8-opt %t/program.mlir --fp8-apply-recipe=recipe-file=%t/array.json 2>&1 | FileCheck %s --check-prefix=ARRAY
// RUN: not fp8-opt %t/program.mlir --fp8-apply-recipe=recipe-file=%t/key.json 2>&1 | FileCheck %s --check-prefix=KEY
// RUN: not fp8-opt %t/program.mlir --fp8-apply-recipe=recipe-file=%t/version.json 2>&1 | FileCheck %s --check-prefix=VERSION
// RUN: not fp8-opt %t/program.mlir --fp8-apply-recipe=recipe-file=%t/no-version.json 2>&1 | FileCheck %s --check-prefix=NOVERSION
// RUN: not fp8-opt %t/program.mlir --fp8-apply-recipe=recipe-file=%t/layers.json 2>&1 | FileCheck %s --check-prefix=LAYERS
// RUN: not fp8-opt %t/program.mlir --fp8-apply-recipe=recipe-file=%t/rules.json 2>&1 | FileCheck %s --check-prefix=RULES
// RUN: not fp8-opt %t/program.mlir --fp8-apply-recipe=recipe-file=%t/rule.json 2>&1 | FileCheck %s --check-prefix=RULE
// RUN: not fp8-opt %t/program.mlir --fp8-apply-recipe=recipe-file=%t/rule-key.json 2>&1 | FileCheck %s --check-prefix=RULEKEY
// RUN: not fp8-opt %t/program.mlir --fp8-apply-recipe=recipe-file=%t/rule-missing.json 2>&1 | FileCheck %s --check-prefix=MISSING
// RUN: not fp8-opt %t/program.mlir --fp8-apply-recipe=recipe-file=%t/glob.json 2>&1 | FileCheck %s --check-prefix=GLOB
// RUN: not fp8-opt %t/program.mlir --fp8-apply-recipe=recipe-file=%t/role.json 2>&1 | FileCheck %s --check-prefix=ROLE
// RUN: not fp8-opt %t/program.mlir --fp8-apply-recipe=recipe-file=%t/recipe.json 2>&1 | FileCheck %s --check-prefix=RECIPE
// RUN: not fp8-opt %t/program.mlir --fp8-pipeline="recipe-file=%t/recipe.json to=recipe" 2>&1 | FileCheck %s --check-prefix=RECIPE

// ABSENT: error: recipe file '{{.*}}absent.json': No such file or directory
// SYNTAX: error: recipe file '{{.*}}syntax.json': [2:0, byte=15]: Expected object key
// TWICE: error: recipe file '{{.*}}twice.json': expected keys to be unique, but got 'recipe' a second time in line 3
// ESCAPED: error: recipe file '{{.*}}twice-escaped.json': expected keys to be unique, but got 'rules' a second time in line 2
// ARRAY: error: recipe file '{{.*}}array.json': expected a JSON object
// KEY: error: recipe file '{{.*}}key.json': unknown key 'rule': expected version, rules, first_layers_high_precision or last_layers_high_precision
// VERSION: error: recipe file '{{.*}}version.json': expected key 'version' to be 1
// NOVERSION: error: recipe file '{{.*}}no-version.json': expected key 'version'
// LAYERS: error: recipe file '{{.*}}layers.json': expected key 'last_layers_high_precision' to be a number that is not negative
// RULES: error: recipe file '{{.*}}rules.json': expected key 'rules' to be an array
// RULE: error: recipe file '{{.*}}rule.json': rule 1: expected an object
// RULEKEY: error: recipe file '{{.*}}rule-key.json': rule 0: unknown key 'name': expected match, role or recipe
// MISSING: error: recipe file '{{.*}}rule-missing.json': rule 0: expected strings 'match' and 'recipe', or 'role'
// GLOB: error: recipe file '{{.*}}glob.json': rule 0: key 'match': invalid glob pattern, unmatched '['
// ROLE: error: recipe file '{{.*}}role.json': rule 0: key 'role': expected some of fprop, dgrad, wgrad, attention.qk, attention.pv, attention.dp, attention.dv, attention.dq, attention.dk, but got 'attention.q?*x'
// RECIPE: error: recipe file '{{.*}}recipe.json': rule 0: unknown key 'mode' of recipe 'current'

//--- program.mlir
func.func @f() {
  return
}
//--- twice.json
{"version": 1, "rules": [
  {"match": "a{,\"recipe\":", "recipe": "current"}, {"match": "b", "recipe": "current",
   "recipe": "mxfp8"}]}

//--- twice-escaped.json
{"version": 1, "rules": [],
 "rul\u0065s": []}

//--- syntax.json
{"version": 1,
//--- array.json
[]
//--- key.json
{"version": 1, "rule": []}
//--- version.json
{"version": 2}
//--- no-version.json
{"rules": []}
//--- layers.json
{"version": 1, "last_layers_high_precision": -1}
//--- rules.json
{"version": 1, "rules": {}}
//--- rule.json
{"version": 1, "rules": [{"match": "*", "recipe": "none"}, 3]}
//--- rule-key.json
{"version": 1, "rules": [{"name": "*", "recipe": "none"}]}
//--- rule-missing.json
{"version": 1, "rules": [{"match": "*"}]}
//--- glob.json
{"version": 1, "rules": [{"match": "a[", "recipe": "none"}]}
//--- role.json
{"version": 1, "rules": [{"role": "attention.q?*x", "recipe": "none"}]}
//--- recipe.json
{"version": 1, "rules": [{"match": "*", "recipe": "current,mode=floor"}]}
