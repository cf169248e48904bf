// RUN: fp8-opt --fp8-set-target=chip=sm_89 --fp8-select-kernels="%every_candidate" --fp8-build-kernels %s --emit-bytecode -o %t.mlirbc
// RUN: fp8-translate --kernels-to-ptx %t.mlirbc -o %t.ptx
// RUN: %ptxas -v -arch=sm_89 %t.ptx -o %t.cubin > %t.log 2>&1
// RUN: %python %S/../Inputs/check_resources.py %t.log | FileCheck %s
// RUN: fp8-opt --fp8-set-target=chip=sm_120a --fp8-select-kernels="%every_candidate" --fp8-build-kernels %s --emit-bytecode -o %t.120
// RUN: fp8-translate --kernels-to-ptx %t.120 -o %t.120.ptx
// RUN: %ptxas -v -arch=sm_120a %t.120.ptx -o %t.cubin > %t.120.log 2>&1
// RUN: %python %S/../Inputs/check_resources.py %t.120.log | FileCheck %s
// RUN: fp8-opt --fp8-set-target=chip=sm_121a --fp8-select-kernels %s --fp8-build-kernels --emit-bytecode -o %t.121
// RUN: fp8-translate --kernels-to-cubin %t.121 -o %t.121.cubin
// REQUIRES: ptxas

// Every config of the table becomes machine code without spills or warnings,
// and takes no more memory than there is.

// CHECK: {{[0-9][0-9]+}} kernels

!x = !fp8.scaled<4096x4096xf8E4M3FN, block = [*, *], scale = f32>
!r = !fp8.scaled<4096x4096xf8E4M3FN, block = [1, *], scale = f32>

func.func @fast(%a: !x) -> tensor<4096x4096xbf16> {
  %0 = fp8.matmul %a, %a accumulate = fast : !x, !x -> tensor<4096x4096xbf16>
  return %0 : tensor<4096x4096xbf16>
}

func.func @promoted(%a: !x) -> tensor<4096x4096xf32> {
  %0 = fp8.matmul %a, %a : !x, !x -> tensor<4096x4096xf32>
  return %0 : tensor<4096x4096xf32>
}

func.func @row(%a: !r) -> tensor<4096x4096xbf16> {
  %0 = fp8.matmul %a, %a : !r, !r -> tensor<4096x4096xbf16>
  return %0 : tensor<4096x4096xbf16>
}

!blocks = !fp8.scaled<4096x4096xf8E4M3FN, block = [1, 128], scale = f32>
!squares = !fp8.scaled<4096x4096xf8E4M3FN, block = [128, 128], scale = f32>

func.func @block(%a: !blocks, %b: !squares) -> tensor<4096x4096xf32> {
  %0 = fp8.matmul %a, %b : !blocks, !squares -> tensor<4096x4096xf32>
  return %0 : tensor<4096x4096xf32>
}

func.func @block_turned(%a: !squares, %b: !blocks) -> tensor<4096x4096xbf16> {
  %0 = fp8.matmul %a, %b : !squares, !blocks -> tensor<4096x4096xbf16>
  return %0 : tensor<4096x4096xbf16>
}

func.func @plain(%a: tensor<4096x4096xbf16>) -> tensor<4096x4096xbf16> {
  %0 = fp8.matmul %a, %a accumulate = fast : tensor<4096x4096xbf16>, tensor<4096x4096xbf16> -> tensor<4096x4096xbf16>
  return %0 : tensor<4096x4096xbf16>
}

func.func @plain_transposed(%a: tensor<4096x4096xbf16>) -> tensor<4096x4096xf32> {
  %0 = fp8.matmul %a, %a transpose_a transpose_b accumulate = fast : tensor<4096x4096xbf16>, tensor<4096x4096xbf16> -> tensor<4096x4096xf32>
  return %0 : tensor<4096x4096xf32>
}
