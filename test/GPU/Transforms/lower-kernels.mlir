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
  llvm.func @functions(%p: !llvm.ptr<1>) attributes {fp8_gpu.math = #fp8_gpu.math<approximate>} {
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
  llvm.func @one_plus_erf(%p: !llvm.ptr<1>) attributes {fp8_gpu.math = #fp8_gpu.math<approximate>} {
    %one = arith.constant 1.0 : f32
    %x = llvm.load %p : !llvm.ptr<1> -> f32
    %0 = math.erf %x : f32
    %1 = arith.addf %0, %one : f32
    llvm.store %1, %p : f32, !llvm.ptr<1>
    llvm.return
  }

  // A factor of x goes into the coefficients.
  // CHECK-LABEL: llvm.func @one_plus_scaled_erf
  // CHECK-DAG: %[[LAST:.*]] = llvm.mlir.constant(-1.15110517 : f32)
  // CHECK: %[[X:.*]] = llvm.load
  // CHECK-NEXT: %[[T:.*]] = llvm.intr.fabs(%[[X]])
  // CHECK: %[[LOG:.*]] = llvm.intr.fma(%{{.*}}, %[[T]], %[[LAST]])
  // CHECK-NEXT: llvm.fmul %[[LOG]], %[[T]]
  // CHECK: llvm.fcmp "ogt" %[[X]],
  llvm.func @one_plus_scaled_erf(%p: !llvm.ptr<1>) attributes {fp8_gpu.math = #fp8_gpu.math<approximate>} {
    %one = arith.constant 1.0 : f32
    %root = arith.constant 0.707106769 : f32
    %x = llvm.load %p : !llvm.ptr<1> -> f32
    %0 = arith.mulf %root, %x : f32
    %1 = math.erf %0 : f32
    %2 = arith.addf %1, %one : f32
    llvm.store %2, %p : f32, !llvm.ptr<1>
    llvm.return
  }

  // A negative one does not: the sign counts.
  // CHECK-LABEL: llvm.func @one_plus_negated_erf
  // CHECK: %[[X:.*]] = llvm.load
  // CHECK-NEXT: %[[MINUS:.*]] = llvm.fmul %[[X]],
  // CHECK-NEXT: llvm.intr.fabs(%[[MINUS]])
  // CHECK: llvm.fcmp "ogt" %[[MINUS]],
  llvm.func @one_plus_negated_erf(%p: !llvm.ptr<1>) attributes {fp8_gpu.math = #fp8_gpu.math<approximate>} {
    %one = arith.constant 1.0 : f32
    %minus = arith.constant -0.5 : f32
    %x = llvm.load %p : !llvm.ptr<1> -> f32
    %0 = arith.mulf %x, %minus : f32
    %1 = math.erf %0 : f32
    %2 = arith.addf %1, %one : f32
    llvm.store %2, %p : f32, !llvm.ptr<1>
    llvm.return
  }

  // Who asks for an approximation gets three coefficients.
  // CHECK-LABEL: llvm.func @one_plus_approximate_erf
  // CHECK: %[[T:.*]] = llvm.intr.fabs(%{{.*}})
  // CHECK-COUNT-2: llvm.intr.fma(%{{.*}}, %[[T]], %{{.*}})
  // CHECK-NEXT: llvm.fmul %{{.*}}, %[[T]]
  // CHECK-NEXT: llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz.f32"
  llvm.func @one_plus_approximate_erf(%p: !llvm.ptr<1>) attributes {fp8_gpu.math = #fp8_gpu.math<approximate>} {
    %one = arith.constant 1.0 : f32
    %x = llvm.load %p : !llvm.ptr<1> -> f32
    %0 = math.erf %x fastmath<afn> : f32
    %1 = arith.addf %0, %one : f32
    llvm.store %1, %p : f32, !llvm.ptr<1>
    llvm.return
  }

  // 1 + tanh: two instructions of the slow unit, and a factor of x joins in.
  // CHECK-LABEL: llvm.func @one_plus_tanh
  // CHECK-DAG: %[[FACTOR:.*]] = llvm.mlir.constant(-1.44269502 : f32)
  // CHECK-DAG: %[[TWO:.*]] = llvm.mlir.constant(2.000000e+00 : f32)
  // CHECK: %[[X:.*]] = llvm.load
  // CHECK: %[[LOG:.*]] = llvm.fmul %[[X]], %[[FACTOR]]
  // CHECK: %[[POWER:.*]] = llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz.f32"(%[[LOG]])
  // CHECK: %[[DIVISOR:.*]] = llvm.fadd %[[POWER]], %{{.*}}
  // CHECK: %[[HALF:.*]] = llvm.call_intrinsic "llvm.nvvm.rcp.approx.ftz.f"(%[[DIVISOR]])
  // CHECK: llvm.fmul %[[HALF]], %[[TWO]]
  llvm.func @one_plus_tanh(%p: !llvm.ptr<1>) attributes {fp8_gpu.math = #fp8_gpu.math<approximate>} {
    %one = arith.constant 1.0 : f32
    %half = arith.constant 0.5 : f32
    %x = llvm.load %p : !llvm.ptr<1> -> f32
    %0 = arith.mulf %x, %half : f32
    %1 = math.tanh %0 : f32
    %2 = arith.addf %one, %1 : f32
    llvm.store %2, %p : f32, !llvm.ptr<1>
    llvm.return
  }

  // GELU: x + c x^3 takes the factor of its sum along, and the 2 of 1 + tanh
  // and the 1/2 are no factors any more.
  // CHECK-LABEL: llvm.func @gelu_tanh
  // CHECK: %[[X:.*]] = llvm.load
  // CHECK-NEXT: %[[SQUARE:.*]] = llvm.fmul %[[X]], %[[X]]
  // CHECK-NEXT: %[[SUM:.*]] = llvm.intr.fma(%[[SQUARE]], %{{.*}}, %{{.*}})
  // CHECK-NEXT: %[[LOG:.*]] = llvm.fmul %[[X]], %[[SUM]]
  // CHECK-NEXT: llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz.f32"(%[[LOG]])
  // CHECK-NEXT: llvm.fadd
  // CHECK-NEXT: %[[HALF:.*]] = llvm.call_intrinsic "llvm.nvvm.rcp.approx.ftz.f"
  // CHECK-NEXT: %[[GELU:.*]] = llvm.fmul %[[X]], %[[HALF]]
  // CHECK-NEXT: llvm.store %[[GELU]]
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

  // x / (1 + exp(y)) needs no division; any other does.
  // CHECK-LABEL: llvm.func @logistic
  // CHECK: llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz.f32"
  // CHECK: %[[DIVISOR:.*]] = llvm.fadd
  // CHECK: %[[INVERSE:.*]] = llvm.call_intrinsic "llvm.nvvm.rcp.approx.ftz.f"(%[[DIVISOR]])
  // CHECK: llvm.fmul %{{.*}}, %[[INVERSE]]
  // CHECK: llvm.call_intrinsic "llvm.nvvm.div.full"
  llvm.func @logistic(%p: !llvm.ptr<1>) attributes {fp8_gpu.math = #fp8_gpu.math<approximate>} {
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
  // CHECK: %[[TANH:.*]] = llvm.call_intrinsic "llvm.tanh.f32"(%[[X]]) {{.*}}fastmathFlags = #llvm.fastmath<afn>
  // CHECK: llvm.fadd %[[TANH]], %{{.*}}
  llvm.func @approximate_tanh(%p: !llvm.ptr<1>) attributes {fp8_gpu.math = #fp8_gpu.math<approximate>} {
    %one = arith.constant 1.0 : f32
    %x = llvm.load %p : !llvm.ptr<1> -> f32
    %0 = math.tanh %x fastmath<afn> : f32
    %1 = arith.addf %0, %one : f32
    llvm.store %1, %p : f32, !llvm.ptr<1>
    llvm.return
  }
}
