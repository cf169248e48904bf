// RUN: fp8-compile %s --emit=obj -o %t.o
// RUN: llvm-readelf --sections %t.o | FileCheck %s
// REQUIRES: x86_64

// Large constants are in a section that code reaches over any distance, so that
// there may be more than 2 GiB of them; small ones are where they always were.

// CHECK-DAG: {{ }}.lrodata
// CHECK-DAG: {{ }}.rodata

func.func @weights() -> (tensor<32768xf32>, tensor<4xf32>) {
  %large = arith.constant dense<1.5> : tensor<32768xf32>
  %small = arith.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>
  return %large, %small : tensor<32768xf32>, tensor<4xf32>
}
