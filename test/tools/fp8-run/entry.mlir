// RUN: fp8-run %s --entry=two | FileCheck %s --check-prefix=TWO
// RUN: fp8-run %s --entry=hidden | FileCheck %s --check-prefix=HIDDEN
// RUN: not fp8-run %s 2>&1 | FileCheck %s --check-prefix=AMBIGUOUS
// RUN: not fp8-run %s --entry=three 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// RUN: not fp8-run %s --entry=outside 2>&1 | FileCheck %s --check-prefix=OUTSIDE
// RUN: echo "func.func @only() -> f32 { %%c = arith.constant 5.0 : f32 return %%c : f32 }" > %t.only.mlir
// RUN: fp8-run %t.only.mlir | FileCheck %s --check-prefix=ONLY
// RUN: echo "" > %t.empty.mlir
// RUN: not fp8-run %t.empty.mlir 2>&1 | FileCheck %s --check-prefix=EMPTY

// AMBIGUOUS: error: expected one public function or --entry=NAME, but the module has 'one', 'two'
// UNKNOWN: error: expected a function 'three' with a body, but the module has 'one', 'two'
// OUTSIDE: error: expected a function 'outside' with a body, but the module has 'one', 'two'
// EMPTY: error: expected one public function or --entry=NAME, but the module has no public func.func
// ONLY: result0: F32 [] min 5 max 5 values 5

func.func @one() -> f32 {
  %c = arith.constant 1.0 : f32
  return %c : f32
}

// TWO: values 2
func.func @two() -> f32 {
  %c = arith.constant 2.0 : f32
  return %c : f32
}

// HIDDEN: values 3
func.func private @hidden() -> f32 {
  %c = arith.constant 3.0 : f32
  return %c : f32
}

func.func private @outside() -> f32
