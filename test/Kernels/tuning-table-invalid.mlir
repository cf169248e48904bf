// RUN: split-file %s %t
// RUN: not fp8-opt %t/module.mlir --fp8-select-kernels="table=%t/absent.json" 2>&1 | FileCheck %s --check-prefix=ABSENT
// RUN: not fp8-opt %t/module.mlir --fp8-select-kernels="table=%t/text.json" 2>&1 | FileCheck %s --check-prefix=TEXT
// RUN: not fp8-opt %t/module.mlir --fp8-select-kernels="table=%t/array.json" 2>&1 | FileCheck %s --check-prefix=ARRAY
// RUN: not fp8-opt %t/module.mlir --fp8-select-kernels="table=%t/version.json" 2>&1 | FileCheck %s --check-prefix=VERSION
// RUN: not fp8-opt %t/module.mlir --fp8-select-kernels="table=%t/target.json" 2>&1 | FileCheck %s --check-prefix=TARGET
// RUN: not fp8-opt %t/module.mlir --fp8-select-kernels="table=%t/key.json" 2>&1 | FileCheck %s --check-prefix=KEY
// RUN: not fp8-opt %t/module.mlir --fp8-select-kernels="table=%t/matmuls.json" 2>&1 | FileCheck %s --check-prefix=MATMULS
// RUN: not fp8-opt %t/module.mlir --fp8-select-kernels="table=%t/entry.json" 2>&1 | FileCheck %s --check-prefix=ENTRY
// RUN: not fp8-opt %t/module.mlir --fp8-select-kernels="table=%t/entry-key.json" 2>&1 | FileCheck %s --check-prefix=ENTRY-KEY
// RUN: not fp8-opt %t/module.mlir --fp8-select-kernels="table=%t/config.json" 2>&1 | FileCheck %s --check-prefix=CONFIG
// RUN: not fp8-opt %t/module.mlir --fp8-select-kernels="table=%t/time.json" 2>&1 | FileCheck %s --check-prefix=TIME
// RUN: not fp8-opt %t/module.mlir --fp8-pipeline="target=sm_90a kernel-table=%t/time.json to=buffers" 2>&1 | FileCheck %s --check-prefix=TIME

// ABSENT: error: tuning table '{{.*}}absent.json': No such file or directory
// TEXT: error: tuning table '{{.*}}text.json': [1:{{.*}}]: Invalid JSON value
// ARRAY: error: tuning table '{{.*}}array.json': expected a JSON object
// VERSION: error: tuning table '{{.*}}version.json': expected key 'version' to be 1
// TARGET: error: tuning table '{{.*}}target.json': expected key 'target' to be a string
// KEY: error: tuning table '{{.*}}key.json': unknown key 'gpu': expected version, target, device or matmuls
// MATMULS: error: tuning table '{{.*}}matmuls.json': expected key 'matmuls' to be an array
// ENTRY: error: tuning table '{{.*}}entry.json': matmul 0: expected an object
// ENTRY-KEY: error: tuning table '{{.*}}entry-key.json': matmul 0: unknown key 'm': expected matmul, config or microseconds
// CONFIG: error: tuning table '{{.*}}config.json': matmul 1: expected key 'config' to be a string
// TIME: error: tuning table '{{.*}}time.json': matmul 0: expected key 'microseconds' to be a number

//--- module.mlir
module {}

//--- text.json
fast
//--- array.json
[]
//--- version.json
{"version": 2, "target": "sm_90a", "device": "", "matmuls": []}
//--- target.json
{"version": 1, "device": "", "matmuls": []}
//--- key.json
{"version": 1, "target": "sm_90a", "device": "", "gpu": "", "matmuls": []}
//--- matmuls.json
{"version": 1, "target": "sm_90a", "device": "", "matmuls": {}}
//--- entry.json
{"version": 1, "target": "sm_90a", "device": "", "matmuls": [1]}
//--- entry-key.json
{"version": 1, "target": "sm_90a", "device": "", "matmuls": [{"m": 1}]}
//--- config.json
{"version": 1, "target": "sm_90a", "device": "", "matmuls": [
  {"matmul": "x", "config": "f32", "microseconds": 1}, {"matmul": "x", "config": 2, "microseconds": 1}]}
//--- time.json
{"version": 1, "target": "sm_90a", "device": "", "matmuls": [
  {"matmul": "x", "config": "f32", "microseconds": "1"}]}
