// RUN: fp8-opt %s --pass-pipeline="builtin.module(gpu.module(llvm.func(fp8-lower-approximate-math)))" | FileCheck %s
// RUN: fp8-opt %s --pass-pipeline="builtin.module(gpu.module(llvm.func(fp8-lower-exact-math)))" | FileCheck %s --check-prefix=EXACT

// Each pass takes those of a module's functions whose math it is; exact is what
// nobody needs to ask for.

// CHECK-LABEL: llvm.func @approximate
// CHECK:       llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz.f32"
// CHECK:       llvm.call_intrinsic "llvm.nvvm.div.full"
// CHECK-NOT:   math.exp
// CHECK-NOT:   arith.divf
// CHECK-LABEL: llvm.func @exact
// CHECK-NOT:   llvm.call_intrinsic
// CHECK:       math.exp
// CHECK-NEXT:  arith.divf
// CHECK-NEXT:  math.sqrt
// CHECK-LABEL: llvm.func @unsaid
// CHECK-NOT:   llvm.call_intrinsic
// CHECK:       math.exp
// CHECK-NEXT:  arith.divf
// CHECK-NEXT:  math.sqrt

// CHECK-LABEL: llvm.func @rough
// CHECK:       %[[ROOT:.*]] = llvm.call_intrinsic "llvm.nvvm.sqrt.approx.ftz.f"(%{{.*}})
// CHECK:       %[[INVERSE:.*]] = llvm.call_intrinsic "llvm.nvvm.rcp.approx.ftz.f"(%[[ROOT]])
// CHECK:       arith.mulf %{{.*}}, %[[INVERSE]]

// A program's own flags say nothing about ranges: 3e38 / 2e38 is 1.5.
// CHECK-LABEL: llvm.func @fast
// CHECK-NOT:   rcp.approx
// CHECK:       %[[FIRST:.*]] = llvm.call_intrinsic "llvm.nvvm.div.full"(%arg0, %arg1)
// CHECK:       llvm.call_intrinsic "llvm.nvvm.div.full"(%arg0, %[[FIRST]])
// CHECK:       math.sqrt %{{.*}} fastmath<fast>

// EXACT-LABEL: llvm.func @approximate
// EXACT:       math.exp
// EXACT-NEXT:  arith.divf
// EXACT-NEXT:  math.sqrt
// EXACT-LABEL: llvm.func @exact
// EXACT-NOT:   math.exp
// EXACT:       arith.divf
// EXACT:       llvm.call_intrinsic "llvm.sqrt.f32"
// EXACT-LABEL: llvm.func @unsaid
// EXACT-NOT:   math.exp
// EXACT:       arith.divf
// EXACT:       llvm.call_intrinsic "llvm.sqrt.f32"
gpu.module @kernels {
  llvm.func @approximate(%x: f32, %p: !llvm.ptr<1>) attributes {fp8_gpu.math = #fp8_gpu.math<approximate>} {
    %0 = math.exp %x : f32
    %1 = arith.divf %0, %x : f32
    %2 = math.sqrt %1 : f32
    llvm.store %2, %p : f32, !llvm.ptr<1>
    llvm.return
  }
  llvm.func @exact(%x: f32, %p: !llvm.ptr<1>) attributes {fp8_gpu.math = #fp8_gpu.math<exact>} {
    %0 = math.exp %x : f32
    %1 = arith.divf %0, %x : f32
    %2 = math.sqrt %1 : f32
    llvm.store %2, %p : f32, !llvm.ptr<1>
    llvm.return
  }
  llvm.func @unsaid(%x: f32, %p: !llvm.ptr<1>) {
    %0 = math.exp %x : f32
    %1 = arith.divf %0, %x : f32
    %2 = math.sqrt %1 : f32
    llvm.store %2, %p : f32, !llvm.ptr<1>
    llvm.return
  }
  // Where an approximation will do, of values that are in range.
  llvm.func @rough(%x: f32, %p: !llvm.ptr<1>) attributes {fp8_gpu.math = #fp8_gpu.math<approximate>} {
    %0 = math.sqrt %x fastmath<afn> {fp8.rough} : f32
    %1 = arith.divf %x, %0 fastmath<afn> {fp8.rough} : f32
    llvm.store %1, %p : f32, !llvm.ptr<1>
    llvm.return
  }
  llvm.func @fast(%x: f32, %y: f32, %p: !llvm.ptr<1>) attributes {fp8_gpu.math = #fp8_gpu.math<approximate>} {
    %0 = arith.divf %x, %y fastmath<afn> : f32
    %1 = arith.divf %x, %0 fastmath<fast> : f32
    %2 = math.sqrt %1 fastmath<fast> : f32
    llvm.store %2, %p : f32, !llvm.ptr<1>
    llvm.return
  }
}
