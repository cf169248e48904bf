// RUN: fp8-opt --fp8-lower-kernels %s | FileCheck %s

gpu.module @kernels {
  // No function of a device library is called.
  // CHECK-LABEL: llvm.func @functions
  // CHECK: %[[X:.*]] = llvm.load
  // CHECK: llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz.f32"
  // CHECK: llvm.call_intrinsic "llvm.nvvm.div.full"
  // CHECK: llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz.f32"
  // CHECK: llvm.intr.copysign
  // CHECK: llvm.intr.copysign
  // CHECK-NOT: math.
  // CHECK-NOT: __nv_
  llvm.func @functions(%p: !llvm.ptr<1>) {
    %x = llvm.load %p : !llvm.ptr<1> -> f32
    %0 = math.exp %x : f32
    %1 = arith.divf %0, %x : f32
    %2 = math.erf %1 : f32
    %3 = math.tanh %2 : f32
    %4 = math.log %3 : f32
    llvm.store %4, %p : f32, !llvm.ptr<1>
    llvm.return
  }

  // 1 + erf: the logarithm of erfc(|x|) by one polynomial, without a branch.
  // CHECK-LABEL: llvm.func @one_plus_erf
  // CHECK: %[[T:.*]] = llvm.intr.fabs(%{{.*}})
  // CHECK-COUNT-7: llvm.intr.fma
  // CHECK: llvm.fmul %{{.*}}, %[[T]]
  // CHECK: %[[ERFC:.*]] = llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz.f32"
  // CHECK: %[[REST:.*]] = llvm.intr.fma(%[[ERFC]],
  // CHECK: llvm.select %{{.*}}, %[[REST]], %[[ERFC]]
  // CHECK-NOT: llvm.intr
  llvm.func @one_plus_erf(%p: !llvm.ptr<1>) {
    %one = arith.constant 1.0 : f32
    %x = llvm.load %p : !llvm.ptr<1> -> f32
    %0 = math.erf %x : f32
    %1 = arith.addf %0, %one : f32
    llvm.store %1, %p : f32, !llvm.ptr<1>
    llvm.return
  }

  // 1 + tanh: two instructions of the slow unit, and a factor of x joins in.
  // CHECK-LABEL: llvm.func @one_plus_tanh
  // CHECK-DAG: %[[FACTOR:.*]] = llvm.mlir.constant(-1.44269502 : f32)
  // CHECK: %[[X:.*]] = llvm.load
  // CHECK: %[[LOG:.*]] = llvm.fmul %[[X]], %[[FACTOR]]
  // CHECK: %[[POWER:.*]] = llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz.f32"(%[[LOG]])
  // CHECK: %[[DIVISOR:.*]] = llvm.fadd %[[POWER]], %{{.*}}
  // CHECK: %[[HALF:.*]] = llvm.call_intrinsic "llvm.nvvm.rcp.approx.ftz.f"(%[[DIVISOR]])
  // CHECK: llvm.fadd %[[HALF]], %[[HALF]]
  llvm.func @one_plus_tanh(%p: !llvm.ptr<1>) {
    %one = arith.constant 1.0 : f32
    %half = arith.constant 0.5 : f32
    %x = llvm.load %p : !llvm.ptr<1> -> f32
    %0 = arith.mulf %x, %half : f32
    %1 = math.tanh %0 : f32
    %2 = arith.addf %one, %1 : f32
    llvm.store %2, %p : f32, !llvm.ptr<1>
    llvm.return
  }

  // x / (1 + exp(y)) needs no division; any other does.
  // CHECK-LABEL: llvm.func @logistic
  // CHECK: llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz.f32"
  // CHECK: %[[DIVISOR:.*]] = llvm.fadd
  // CHECK: %[[INVERSE:.*]] = llvm.call_intrinsic "llvm.nvvm.rcp.approx.ftz.f"(%[[DIVISOR]])
  // CHECK: llvm.fmul %{{.*}}, %[[INVERSE]]
  // CHECK: llvm.call_intrinsic "llvm.nvvm.div.full"
  llvm.func @logistic(%p: !llvm.ptr<1>) {
    %one = arith.constant 1.0 : f32
    %two = arith.constant 2.0 : f32
    %x = llvm.load %p : !llvm.ptr<1> -> f32
    %0 = arith.negf %x : f32
    %1 = math.exp %0 : f32
    %2 = arith.addf %1, %one : f32
    %3 = arith.divf %x, %2 : f32
    %4 = arith.addf %1, %two : f32
    %5 = arith.divf %3, %4 : f32
    llvm.store %5, %p : f32, !llvm.ptr<1>
    llvm.return
  }

  // Who asks for an approximation gets the roughest.
  // CHECK-LABEL: llvm.func @approximate_tanh
  // CHECK: %[[X:.*]] = llvm.load
  // CHECK: %[[TANH:.*]] = llvm.call_intrinsic "llvm.nvvm.tanh.approx.f32"(%[[X]])
  // CHECK: llvm.fadd %[[TANH]], %{{.*}}
  llvm.func @approximate_tanh(%p: !llvm.ptr<1>) {
    %one = arith.constant 1.0 : f32
    %x = llvm.load %p : !llvm.ptr<1> -> f32
    %0 = math.tanh %x fastmath<afn> : f32
    %1 = arith.addf %0, %one : f32
    llvm.store %1, %p : f32, !llvm.ptr<1>
    llvm.return
  }
}
