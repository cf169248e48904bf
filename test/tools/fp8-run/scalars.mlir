// RUN: %python %S/Inputs/tensors.py make %t.in arg0=F64::1.25 arg1=F32::2.5 arg2=F16::3 arg3=BF16::-4 arg4=BOOL::1 arg5=I8::-7 arg6=I64::-9
// RUN: fp8-run %s --entry=all --inputs=%t.in --outputs=%t.out
// RUN: %python %S/Inputs/tensors.py show %t.out | FileCheck %s
// RUN: fp8-run %s --entry=one | FileCheck %s --check-prefix=ONE
// RUN: fp8-run %s --entry=none | count 0

// CHECK: result0: BF16 []: -4.0
// CHECK-NEXT: result1: F64 []: 1.25
// CHECK-NEXT: result2: BOOL []: True
// CHECK-NEXT: result3: I8 []: -7
// CHECK-NEXT: result4: F16 []: 3.0
// CHECK-NEXT: result5: F32 []: 2.5
// CHECK-NEXT: result6: I64 []: -9

// The order has gaps in the struct of results for alignment.
func.func @all(%a: f64, %b: f32, %c: f16, %d: bf16, %e: i1, %f: i8, %g: i64)
    -> (bf16, f64, i1, i8, f16, f32, i64) {
  return %d, %a, %e, %f, %c, %b, %g : bf16, f64, i1, i8, f16, f32, i64
}

// A single scalar is no struct.
// ONE: result0: F32 [] min 3 max 3 values 3
func.func @one() -> f32 {
  %three = arith.constant 3.0 : f32
  return %three : f32
}

func.func @none() {
  return
}
