// RUN: fp8-opt --fp8-set-target=chip=sm_90a --fp8-select-kernels="%every_candidate" --fp8-build-kernels %s --emit-bytecode -o %t.mlirbc
// RUN: fp8-translate --kernels-to-ptx %t.mlirbc -o %t.ptx
// RUN: %ptxas -v -arch=sm_90a %t.ptx -o %t.cubin > %t.log 2>&1
// RUN: %python %S/../Inputs/check_resources.py %t.log | FileCheck %s
// REQUIRES: ptxas

// Products that transpose an operand of 8 bits in registers, with one accumulation
// and the other, stored in bulk and element by element: no spills, no wgmma that is
// serialized.

// CHECK: {{[0-9][0-9]+}} kernels

!a = !fp8.scaled<4096x4096xf8E4M3FN, block = [*, *], scale = f32>

func.func @b_many(%a: !a, %b: !a) -> tensor<4096x4096xbf16> {
  %0 = fp8.matmul %a, %b transpose_b accumulate = fast : !a, !a -> tensor<4096x4096xbf16>
  return %0 : tensor<4096x4096xbf16>
}

func.func @b_promoted(%a: !a, %b: !a) -> tensor<4096x4096xbf16> {
  %0 = fp8.matmul %a, %b transpose_b : !a, !a -> tensor<4096x4096xbf16>
  return %0 : tensor<4096x4096xbf16>
}

func.func @b_wide(%a: !a, %b: !a) -> tensor<4096x4096xf32> {
  %0 = fp8.matmul %a, %b transpose_b accumulate = fast : !a, !a -> tensor<4096x4096xf32>
  return %0 : tensor<4096x4096xf32>
}

func.func @a_many(%a: !a, %b: !a) -> tensor<4096x4096xbf16> {
  %0 = fp8.matmul %a, %b transpose_a accumulate = fast : !a, !a -> tensor<4096x4096xbf16>
  return %0 : tensor<4096x4096xbf16>
}

func.func @a_promoted(%a: !a, %b: !a) -> tensor<4096x4096xf32> {
  %0 = fp8.matmul %a, %b transpose_a : !a, !a -> tensor<4096x4096xf32>
  return %0 : tensor<4096x4096xf32>
}
