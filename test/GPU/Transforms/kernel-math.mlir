// RUN: fp8-opt --fp8-lower-kernels %s -o %t.mlir
// RUN: %python %S/Inputs/evaluate_math.py %t.mlir | FileCheck %s

// Functions are as exact as docs/Kernels.md says: absolute errors, of GELU
// relative to its argument.

// CHECK: {{^}}erf: error {{[0-9].[0-9]e-0[89]$|1.0e-07$}}
// CHECK-NEXT: {{^}}tanh: error {{[0-9].[0-9]e-0[89]$|1.[0-9]e-07$}}
// CHECK-NEXT: {{^}}one_plus_erf: error 1.{{[0-9]}}e-07{{$}}
// CHECK-NEXT: {{^}}one_plus_erf_afn: error 1.7e-04{{$}}
// CHECK-NEXT: {{^}}one_plus_tanh: error {{1.[0-9]e-07$|[0-9].[0-9]e-08$}}
// CHECK-NEXT: {{^}}gelu_erf: error {{1.[0-9]e-07$|[0-9].[0-9]e-08$}}
// CHECK-NEXT: {{^}}gelu_tanh: error {{1.[0-9]e-07$|[0-9].[0-9]e-08$}}

gpu.module @kernels {
  llvm.func @erf(%p: !llvm.ptr<1>) attributes {fp8_gpu.math = #fp8_gpu.math<approximate>} {
    %x = llvm.load %p : !llvm.ptr<1> -> f32
    %0 = math.erf %x : f32
    llvm.store %0, %p : f32, !llvm.ptr<1>
    llvm.return
  }
  llvm.func @tanh(%p: !llvm.ptr<1>) attributes {fp8_gpu.math = #fp8_gpu.math<approximate>} {
    %x = llvm.load %p : !llvm.ptr<1> -> f32
    %0 = math.tanh %x : f32
    llvm.store %0, %p : f32, !llvm.ptr<1>
    llvm.return
  }
  llvm.func @one_plus_erf(%p: !llvm.ptr<1>) attributes {fp8_gpu.math = #fp8_gpu.math<approximate>} {
    %one = arith.constant 1.0 : f32
    %x = llvm.load %p : !llvm.ptr<1> -> f32
    %0 = math.erf %x : f32
    %1 = arith.addf %0, %one : f32
    llvm.store %1, %p : f32, !llvm.ptr<1>
    llvm.return
  }
  llvm.func @one_plus_erf_afn(%p: !llvm.ptr<1>) attributes {fp8_gpu.math = #fp8_gpu.math<approximate>} {
    %one = arith.constant 1.0 : f32
    %x = llvm.load %p : !llvm.ptr<1> -> f32
    %0 = math.erf %x fastmath<afn> : f32
    %1 = arith.addf %0, %one : f32
    llvm.store %1, %p : f32, !llvm.ptr<1>
    llvm.return
  }
  llvm.func @one_plus_tanh(%p: !llvm.ptr<1>) attributes {fp8_gpu.math = #fp8_gpu.math<approximate>} {
    %one = arith.constant 1.0 : f32
    %x = llvm.load %p : !llvm.ptr<1> -> f32
    %0 = math.tanh %x : f32
    %1 = arith.addf %0, %one : f32
    llvm.store %1, %p : f32, !llvm.ptr<1>
    llvm.return
  }
  llvm.func @gelu_erf(%p: !llvm.ptr<1>) attributes {fp8_gpu.math = #fp8_gpu.math<approximate>} {
    %one = arith.constant 1.0 : f32
    %half = arith.constant 0.5 : f32
    %root = arith.constant 0.707106769 : f32
    %x = llvm.load %p : !llvm.ptr<1> -> f32
    %0 = arith.mulf %x, %root : f32
    %1 = math.erf %0 : f32
    %2 = arith.addf %1, %one : f32
    %3 = arith.mulf %x, %2 : f32
    %4 = arith.mulf %3, %half : f32
    llvm.store %4, %p : f32, !llvm.ptr<1>
    llvm.return
  }
  llvm.func @gelu_tanh(%p: !llvm.ptr<1>) attributes {fp8_gpu.math = #fp8_gpu.math<approximate>} {
    %c0 = arith.constant 0.044715 : f32
    %c1 = arith.constant 0.7978845608 : f32
    %half = arith.constant 0.5 : f32
    %one = arith.constant 1.0 : f32
    %x = llvm.load %p : !llvm.ptr<1> -> f32
    %0 = arith.mulf %x, %x : f32
    %1 = arith.mulf %0, %x : f32
    %2 = arith.mulf %1, %c0 : f32
    %3 = arith.addf %x, %2 : f32
    %4 = arith.mulf %3, %c1 : f32
    %5 = math.tanh %4 : f32
    %6 = arith.addf %5, %one : f32
    %7 = arith.mulf %x, %half : f32
    %8 = arith.mulf %7, %6 : f32
    llvm.store %8, %p : f32, !llvm.ptr<1>
    llvm.return
  }
}
