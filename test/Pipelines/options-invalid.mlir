// RUN: not fp8-opt %s --fp8-pipeline="to=nowhere" 2>&1 | FileCheck %s --check-prefix=PHASE
// RUN: not fp8-opt %s --fp8-pipeline="from=nowhere" 2>&1 | FileCheck %s --check-prefix=PHASE
// RUN: not fp8-opt %s --fp8-pipeline="from=fusion to=recipe" 2>&1 | FileCheck %s --check-prefix=ORDER
// RUN: not fp8-opt %s --fp8-pipeline="target=abacus" 2>&1 | FileCheck %s --check-prefix=TARGET
// RUN: not fp8-opt %s --fp8-pipeline="recipe=fancy" 2>&1 | FileCheck %s --check-prefix=RECIPE
// RUN: not fp8-opt %s --fp8-pipeline="require=perhaps" 2>&1 | FileCheck %s --check-prefix=BOOL
// RUN: not fp8-opt %s --fp8-pipeline="recipes=current" 2>&1 | FileCheck %s --check-prefix=MISSPELT
// RUN: not fp8-opt %s --fp8-pipeline="colour=red" 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// RUN: not fp8-opt %s --fp8-pipeline="max-padding=much" 2>&1 | FileCheck %s --check-prefix=NUMBER
// RUN: not fp8-opt %s --fp8-pipeline="target=sm_90a kernel-format=tar" 2>&1 | FileCheck %s --check-prefix=FORMAT
// RUN: not fp8-opt %s --fp8-pipeline="machine=h100" 2>&1 | FileCheck %s --check-prefix=MACHINE
// RUN: not fp8-opt %s --fp8-pipeline="tf32" 2>&1 | FileCheck %s --check-prefix=TF32
// RUN: not fp8-opt %s --fp8-pipeline="accumulate=f64" 2>&1 | FileCheck %s --check-prefix=ACCUMULATE
// RUN: not fp8-opt %s --fp8-pipeline="accumulate=tensor-core accumulation-of=abacus" 2>&1 | FileCheck %s --check-prefix=SUMS
// RUN: not fp8-opt %s --fp8-pipeline="accumulation-of=sm_100a" 2>&1 | FileCheck %s --check-prefix=SUMS-F32
// RUN: not fp8-opt %s --fp8-pipeline="target=sm_90a tf32=19" 2>&1 | FileCheck %s --check-prefix=TF32-BOOL
// RUN: not fp8-opt %s --fp8-pipeline="fusion-report=-" 2>&1 | FileCheck %s --check-prefix=REPORT
// RUN: not fp8-opt %s --fp8-pipeline="target=sm_90a to=fusion fusion-report=-" 2>&1 | FileCheck %s --check-prefix=REPORT-TO
// RUN: not fp8-opt %s --fp8-pipeline="target=sm_90a from=kernels" --fp8-fusion-report=- 2>&1 | FileCheck %s --check-prefix=REPORT-FROM
// RUN: not fp8-opt %s --canonicalize --fp8-fusion-report=- 2>&1 | FileCheck %s --check-prefix=REPORT-PIPELINE
// RUN: not fp8-opt %s --fp8-remarks=csv:- 2>&1 | FileCheck %s --check-prefix=REMARKS
// RUN: not fp8-opt %s --fp8-remarks=json:%t.absent/remarks.json 2>&1 | FileCheck %s --check-prefix=DIRECTORY
// RUN: not fp8-opt %s --pass-pipeline="builtin.module(fp8-pipeline{to=nowhere})" 2>&1 | FileCheck %s --check-prefix=PHASE

// MACHINE: error: expected a GPU as the target with machine, but got 'cpu'
// PHASE: error: expected a phase (import, recipe, scaling, fusion, buffers, kernels, host), but got 'nowhere'
// ORDER: error: expected phase 'fusion' or a later one to end with, but got 'recipe'
// TARGET: error: expected target to be one of cpu, sm_90a, sm_100a, sm_89, sm_120a, sm_121a, sm_80, but got 'abacus'
// RECIPE: error: expected a recipe (current, rowwise, block, mxfp8, nvfp4, delayed, static, none), but got 'fancy'
// BOOL: error: expected option 'require' to be true or false, but got 'perhaps'
// MISSPELT: error: unknown option 'recipes'; did you mean 'recipe'?
// UNKNOWN: error: unknown option 'colour': expected one of accumulate, accumulation-of, attention-recipe, evaluate-constants, from, functional-state, fusion-report, invariant, keep-peak, kernel-cache, kernel-format, kernel-table, machine, max-padding, memory-price, raise-attention, recipe, recipe-file, require, stats, target, tf32, to
// NUMBER: error: expected option 'max-padding' to be a number, but got 'much'
// FORMAT: error: expected kernel-format to be auto, cubin or ptx, but got 'tar'
// TF32: error: expected a GPU as the target with tf32, but got 'cpu'
// ACCUMULATE: error: expected accumulate to be f32 or tensor-core, but got 'f64'
// SUMS: error: expected accumulation-of to be one of sm_90a, sm_100a, sm_89, sm_120a, sm_121a, sm_80, but got 'abacus'
// SUMS-F32: error: expected accumulate to be tensor-core with accumulation-of, but got 'f32'
// TF32-BOOL: error: expected option 'tf32' to be true or false, but got '19'
// REPORT: error: expected a GPU as the target with fusion-report, but got 'cpu'
// REPORT-TO: error: expected phase 'buffers', which chooses kernels, to be run with fusion-report, but got those from 'import' to 'fusion'
// REPORT-FROM: error: expected phase 'buffers', which chooses kernels, to be run with fusion-report, but got those from 'kernels' to 'host'
// REPORT-PIPELINE: error: expected --fp8-pipeline with --fp8-fusion-report
// REMARKS: error: expected remarks as json:FILE or text:FILE, but got 'csv:-'
// DIRECTORY: error: remarks file '{{.*}}.absent/remarks.json': expected a writable directory

func.func @f() {
  return
}
