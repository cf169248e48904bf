// RUN: split-file %s %t
// RUN: not fp8-compile %t/itself.mlir -o %t.so 2>&1 | FileCheck %s --check-prefix=ITSELF --implicit-check-not=error:
// RUN: not fp8-compile %t/each_other.mlir -o %t.so 2>&1 | FileCheck %s --check-prefix=EACH-OTHER --implicit-check-not=error:
// RUN: fp8-compile %t/ends.mlir -o %t.so

//--- itself.mlir
// ITSELF: itself.mlir:3:{{.*}}error: 'func.call' op expected a call that may end, but 'f' calls itself whatever its arguments are
func.func @f(%x: f32) -> f32 {
  %r = func.call @f(%x) : (f32) -> f32
  return %r : f32
}

//--- each_other.mlir
func.func @f(%x: f32) -> f32 {
  %r = func.call @g(%x) : (f32) -> f32
  return %r : f32
}
// EACH-OTHER: error: 'func.call' op expected a call that may end, but 'f' calls itself whatever its arguments are
func.func private @g(%x: f32) -> f32 {
  %r = func.call @f(%x) : (f32) -> f32
  return %r : f32
}

//--- ends.mlir
func.func @f(%x: i32) -> i32 {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %c = arith.cmpi sgt, %x, %zero : i32
  %r = scf.if %c -> i32 {
    %y = arith.subi %x, %one : i32
    %s = func.call @f(%y) : (i32) -> i32
    scf.yield %s : i32
  } else {
    scf.yield %x : i32
  }
  return %r : i32
}
