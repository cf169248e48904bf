// RUN: fp8-compile %s --recipe=current --mlir-timing -o %t.so 2>&1 | FileCheck %s
// RUN: fp8-run %s --recipe=current --mlir-timing --compile-to=fusion 2>&1 | FileCheck %s --check-prefix=PHASE

// The matmul's roundings are more arithmetic than LLVM 22 can look through for
// CRCs: it did not end in minutes.

// CHECK: Execution time report
// CHECK-DAG: parse
// CHECK-DAG: run passes
// CHECK-DAG: OneShotBufferizePass
// CHECK-DAG: translate to LLVM IR
// CHECK-DAG: optimize LLVM IR
// CHECK-DAG: generate machine code
// CHECK-DAG: link and write
// CHECK: Total

// PHASE-NOT: OneShotBufferizePass
// PHASE: ApplyRecipePass
func.func @f(%x: tensor<16x32xf32>, %w: tensor<32x32xf32>, %y: tensor<16x32xf32>) -> tensor<16x32xf32> {
  %0 = linalg.matmul ins(%x, %w : tensor<16x32xf32>, tensor<32x32xf32>) outs(%y : tensor<16x32xf32>) -> tensor<16x32xf32>
  return %0 : tensor<16x32xf32>
}
