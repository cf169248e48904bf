// RUN: %python %S/Inputs/tensors.py make %t.ends arg0=F32:4:1 arg1=I32::100
// RUN: %python %S/Inputs/tensors.py make %t.endless arg0=F32:4:1 arg1=I32::-1
// RUN: fp8-run %s --entry=tensors --inputs=%t.ends | FileCheck %s
// RUN: not fp8-run %s --entry=tensors --inputs=%t.endless 2>&1 | FileCheck %s --check-prefix=TENSORS
// RUN: env FP8_CUDA_DRIVER=emulator fp8-run %s --target=sm_90a --entry=tensors --inputs=%t.ends | FileCheck %s
// RUN: not env FP8_CUDA_DRIVER=emulator fp8-run %s --target=sm_90a --entry=tensors --inputs=%t.endless 2>&1 | FileCheck %s --check-prefix=TENSORS
// RUN: %python %S/Inputs/tensors.py make %t.numbers arg0=I32::-1
// RUN: not fp8-run %s --entry=even --inputs=%t.numbers 2>&1 | FileCheck %s --check-prefix=NUMBERS
// RUN: not bash -c 'ulimit -s 16384; exec "$@"' - fp8-run %s --entry=even --inputs=%t.numbers 2>&1 | FileCheck %s --check-prefix=LARGER

// Calls that a condition ends, too late for the stack.

// CHECK: result0: F32 [4] min {{1.26765e\+30}}
// TENSORS: fp8-run: error: expected the calls of 'tensors' to end before the stack does, but it has {{[0-9]+}} KiB and no room for another call
// TENSORS-NOT: {{.}}
// NUMBERS: fp8-run: error: expected the calls of '{{even|odd}}' to end before the stack does, but it has {{[0-9]+}} KiB and no room for another call
// NUMBERS-NOT: {{.}}
// LARGER: but it has 163{{[0-9][0-9]}} KiB

func.func @tensors(%x: tensor<4xf32>, %n: i32) -> tensor<4xf32> {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %goes_on = arith.cmpi ne, %n, %zero : i32
  %r = scf.if %goes_on -> tensor<4xf32> {
    %m = arith.subi %n, %one : i32
    %y = arith.addf %x, %x : tensor<4xf32>
    %s = func.call @tensors(%y, %m) : (tensor<4xf32>, i32) -> tensor<4xf32>
    scf.yield %s : tensor<4xf32>
  } else {
    scf.yield %x : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}

// LLVM would make a loop without an end of these.
func.func @even(%n: i32) -> i32 {
  %zero = arith.constant 0 : i32
  %two = arith.constant 2 : i32
  %goes_on = arith.cmpi ne, %n, %zero : i32
  %r = scf.if %goes_on -> i32 {
    %m = arith.subi %n, %two : i32
    %s = func.call @odd(%m) : (i32) -> i32
    scf.yield %s : i32
  } else {
    scf.yield %n : i32
  }
  return %r : i32
}
func.func private @odd(%n: i32) -> i32 {
  %s = func.call @even(%n) : (i32) -> i32
  return %s : i32
}
