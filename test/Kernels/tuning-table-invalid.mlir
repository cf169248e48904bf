// RUN: split-file %s %t
// RUN: not fp8-opt %t/module.mlir --fp8-set-target=chip=sm_90a --fp8-select-kernels="table=%t/absent.json" 2>&1 | FileCheck %s --check-prefix=ABSENT
// RUN: not fp8-opt %t/module.mlir --fp8-set-target=chip=sm_90a --fp8-select-kernels="table=%t/text.json" 2>&1 | FileCheck %s --check-prefix=TEXT
// RUN: not fp8-opt %t/module.mlir --fp8-set-target=chip=sm_90a --fp8-select-kernels="table=%t/array.json" 2>&1 | FileCheck %s --check-prefix=ARRAY
// RUN: not fp8-opt %t/module.mlir --fp8-set-target=chip=sm_90a --fp8-select-kernels="table=%t/version.json" 2>&1 | FileCheck %s --check-prefix=VERSION
// RUN: not fp8-opt %t/module.mlir --fp8-set-target=chip=sm_90a --fp8-select-kernels="table=%t/target.json" 2>&1 | FileCheck %s --check-prefix=TARGET
// RUN: not fp8-opt %t/module.mlir --fp8-set-target=chip=sm_90a --fp8-select-kernels="table=%t/key.json" 2>&1 | FileCheck %s --check-prefix=KEY
// RUN: not fp8-opt %t/module.mlir --fp8-set-target=chip=sm_90a --fp8-select-kernels="table=%t/kernels.json" 2>&1 | FileCheck %s --check-prefix=KERNELS
// RUN: not fp8-opt %t/module.mlir --fp8-set-target=chip=sm_90a --fp8-select-kernels="table=%t/entry.json" 2>&1 | FileCheck %s --check-prefix=ENTRY
// RUN: not fp8-opt %t/module.mlir --fp8-set-target=chip=sm_90a --fp8-select-kernels="table=%t/entry-key.json" 2>&1 | FileCheck %s --check-prefix=ENTRY-KEY
// RUN: not fp8-opt %t/module.mlir --fp8-set-target=chip=sm_90a --fp8-select-kernels="table=%t/config.json" 2>&1 | FileCheck %s --check-prefix=CONFIG
// RUN: not fp8-opt %t/module.mlir --fp8-set-target=chip=sm_90a --fp8-select-kernels="table=%t/time.json" 2>&1 | FileCheck %s --check-prefix=TIME
// RUN: not fp8-opt %t/module.mlir --fp8-pipeline="target=sm_90a kernel-table=%t/time.json to=buffers" 2>&1 | FileCheck %s --check-prefix=TIME

// ABSENT: error: tuning table '{{.*}}absent.json': No such file or directory
// TEXT: error: tuning table '{{.*}}text.json': [1:{{.*}}]: Invalid JSON value
// ARRAY: error: tuning table '{{.*}}array.json': expected a JSON object
// VERSION: error: tuning table '{{.*}}version.json': expected key 'version' to be 2
// TARGET: error: tuning table '{{.*}}target.json': expected key 'target' to be a string
// KEY: error: tuning table '{{.*}}key.json': unknown key 'gpu': expected version, target, device or kernels
// KERNELS: error: tuning table '{{.*}}kernels.json': expected key 'kernels' to be an array
// ENTRY: error: tuning table '{{.*}}entry.json': kernel 0: expected an object
// ENTRY-KEY: error: tuning table '{{.*}}entry-key.json': kernel 0: unknown key 'm': expected kernel, config or microseconds
// CONFIG: error: tuning table '{{.*}}config.json': kernel 1: expected key 'config' to be a string
// TIME: error: tuning table '{{.*}}time.json': kernel 0: expected key 'microseconds' to be a number

//--- module.mlir
module {}

//--- text.json
fast
//--- array.json
[]
//--- version.json
{"version": 1, "target": "sm_90a", "device": "", "matmuls": []}
//--- target.json
{"version": 2, "device": "", "kernels": []}
//--- key.json
{"version": 2, "target": "sm_90a", "device": "", "gpu": "", "kernels": []}
//--- kernels.json
{"version": 2, "target": "sm_90a", "device": "", "kernels": {}}
//--- entry.json
{"version": 2, "target": "sm_90a", "device": "", "kernels": [1]}
//--- entry-key.json
{"version": 2, "target": "sm_90a", "device": "", "kernels": [{"m": 1}]}
//--- config.json
{"version": 2, "target": "sm_90a", "device": "", "kernels": [
  {"kernel": "matmul x", "config": "f32", "microseconds": 1}, {"kernel": "matmul x", "config": 2, "microseconds": 1}]}
//--- time.json
{"version": 2, "target": "sm_90a", "device": "", "kernels": [
  {"kernel": "matmul x", "config": "f32", "microseconds": "1"}]}
