// RUN: rm -rf %t && mkdir -p %t
// RUN: not fp8-run %s --entry=fine --outputs=%t/no/out 2>&1 | FileCheck %s --check-prefix=DIRECTORY
// RUN: not fp8-run %s --entry=fine --outputs=%t 2>&1 | FileCheck %s --check-prefix=IS-DIRECTORY
// RUN: echo old > %t/out
// RUN: not fp8-run %s --entry=fails --outputs=%t/out 2>&1 | FileCheck %s --check-prefix=ABORT
// RUN: not fp8-run %s --entry=calls --outputs=%t/out 2>&1 | FileCheck %s --check-prefix=SYMBOL
// RUN: FileCheck %s --check-prefix=OLD --input-file=%t/out
// RUN: ls -A %t | count 1
// RUN: fp8-run %s --entry=fine --outputs=%t/out
// RUN: %python %S/Inputs/tensors.py show %t/out | FileCheck %s --check-prefix=NEW
// RUN: ls -A %t | count 1

// Whatever goes wrong, the old file stays and there is no other.

// DIRECTORY: {{^}}fp8-run: error: {{.*}}/no/out: cannot open its directory: No such file or directory
// IS-DIRECTORY: {{^}}fp8-run: error: {{.*}}: expected a regular file
// OLD: old
// NEW: result0: F32 []: 1.0
func.func @fine() -> f32 {
  %c = arith.constant 1.0 : f32
  return %c : f32
}

// ABORT: {{^}}fp8-run: error: this must not happen{{$}}
func.func @fails() -> f32 {
  %false = arith.constant false
  cf.assert %false, "this must not happen"
  %c = arith.constant 1.0 : f32
  return %c : f32
}

// SYMBOL: {{^}}fp8-run: error: expected function 'nowhere_defined' to be defined in the program or the runtime, but it is neither{{$}}
func.func private @nowhere_defined() -> f32
func.func @calls() -> f32 {
  %c = func.call @nowhere_defined() : () -> f32
  return %c : f32
}
