// RUN: rm -rf %t && split-file %s %t

// K is neither a multiple of what the recipe's blocks need, nor nearly: the
// contraction stays in high precision unless that is an error.

// RUN: not fp8-compile %t/k.mlir --target=sm_90a --recipe=current --fp8-require -o %t/k.so 2>&1 | FileCheck %s --check-prefix=K
// RUN: not ls %t/k.so
// RUN: fp8-compile %t/k.mlir --target=sm_90a --recipe=current -o %t/k.so --fp8-remarks=text:- | FileCheck %s --check-prefix=STAYS
// K: k.mlir:2:8: error: expected 'k.matmul_0' to be in FP8, but K=10 is not a multiple of 16
// STAYS: k.matmul_0: high precision; {{.*}}K=10 is not a multiple of 16

// RUN: not fp8-compile %t/syntax.mlir -o %t/x.so 2>&1 | FileCheck %s --check-prefix=SYNTAX
// RUN: not fp8-compile %t/private.mlir -o %t/x.so 2>&1 | FileCheck %s --check-prefix=PRIVATE
// RUN: not fp8-compile %t/unranked.mlir -o %t/x.so 2>&1 | FileCheck %s --check-prefix=UNRANKED
// RUN: not fp8-compile %t/rank.mlir -o %t/x.so 2>&1 | FileCheck %s --check-prefix=RANK
// RUN: not fp8-compile %t/extern.mlir -o %t/x.so 2>&1 | FileCheck %s --check-prefix=EXTERN
// RUN: not fp8-compile %t/names.mlir -o %t/x.so 2>&1 | FileCheck %s --check-prefix=NAMES
// RUN: not fp8-compile %t/program.mlir -o %t/x.so 2>&1 | FileCheck %s --check-prefix=PROGRAM
// RUN: not fp8-compile %t/update.mlir --recipe=delayed -o %t/x.so 2>&1 | FileCheck %s --check-prefix=UPDATE
// RUN: fp8-compile %t/update.mlir --recipe=current -o %t/update.so
// RUN: not fp8-compile %t/kernels.mlir --target=sm_90a --emit=ptx 2>&1 | FileCheck %s --check-prefix=KERNELS
// RUN: not ls %t/x.so
// RUN: not ls %t/x.h
// SYNTAX: syntax.mlir:1:14: error: expected
// PRIVATE: error: expected a public function with a body, but there is none
// UNRANKED: error: expected argument 'arg0' to have a rank, but got 'tensor<*xf32>'
// RANK: {{^}}fp8-compile: error: expected tensors of up to 8 dimensions in the interface, but 'x' of 'f' has 9
// EXTERN: {{^}}fp8-compile: error: expected function 'elsewhere' to be defined in the program or the runtime, but it is neither
// NAMES: error: expected names of functions to differ in C too, but got 'x_a_b' twice
// PROGRAM: error: expected names of functions to differ in C too, but got 'x_program' twice
// UPDATE: error: expected no function 'update_state' in a program with scaling state, since 'x_update_state' is what C calls the end of a step
// KERNELS: {{^}}fp8-compile: error: expected a program with kernels, but it has none

//--- k.mlir
func.func @k(%x: tensor<32x10xbf16>, %w: tensor<10x16xbf16>, %y: tensor<32x16xf32>) -> tensor<32x16xf32> {
  %0 = linalg.matmul ins(%x, %w : tensor<32x10xbf16>, tensor<10x16xbf16>)
                     outs(%y : tensor<32x16xf32>) -> tensor<32x16xf32>
  return %0 : tensor<32x16xf32>
}
//--- syntax.mlir
func.func @f( {
//--- private.mlir
func.func private @f()
//--- unranked.mlir
func.func @f(%x: tensor<*xf32>) {
  return
}
//--- rank.mlir
func.func @f(%x: tensor<1x1x1x1x1x1x1x1x1xf32> {fp8.name = "x"}) {
  return
}
//--- extern.mlir
func.func private @elsewhere(%x: i32) -> i32
func.func @f(%x: i32) -> i32 {
  %0 = call @elsewhere(%x) : (i32) -> i32
  return %0 : i32
}
//--- names.mlir
func.func @a_b() {
  return
}
func.func @a.b() {
  return
}
//--- program.mlir
func.func @program() {
  return
}
//--- update.mlir
func.func @update_state(%x: tensor<32x16xbf16>, %w: tensor<16x16xbf16>, %y: tensor<32x16xf32>) -> tensor<32x16xf32> {
  %0 = linalg.matmul ins(%x, %w : tensor<32x16xbf16>, tensor<16x16xbf16>)
                     outs(%y : tensor<32x16xf32>) -> tensor<32x16xf32>
  return %0 : tensor<32x16xf32>
}
//--- kernels.mlir
func.func @same(%x: tensor<2xf32>) -> tensor<2xf32> {
  return %x : tensor<2xf32>
}
