// REQUIRES: ptxas
// RUN: fp8-compile %s --target=sm_90a --emit=cubin -o %t.cubin
// RUN: llvm-readelf --file-header %t.cubin | FileCheck %s
// CHECK: NVIDIA CUDA architecture

// One of generated kernels and loops, too; the assembler takes the PTX as it is.

// RUN: fp8-compile %S/emit.mlir --target=sm_90a --recipe=current --emit=ptx -o %t.ptx
// RUN: %ptxas -arch=sm_90a %t.ptx -o %t.cubin
// RUN: llvm-readelf --symbols %t.cubin | FileCheck %s --check-prefix=BOTH
// RUN: fp8-compile %S/emit.mlir --target=sm_90a --recipe=current --emit=cubin -o %t.cubin
// RUN: llvm-readelf --symbols %t.cubin | FileCheck %s --check-prefix=BOTH
// BOTH-DAG: FUNC {{.*}} fp8_matmul_sm90a_
// BOTH-DAG: FUNC {{.*}} fp8_fusion_sm90a_
// BOTH-DAG: FUNC {{.*}} fill_

// Without ptxas there is none; a program embeds its PTX, and says so.

// RUN: not env CUDA_HOME=%t-nowhere fp8-compile %s --target=sm_90a --emit=cubin -o %t.cubin 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: env CUDA_HOME=%t-nowhere fp8-compile %s --target=sm_90a -o %t.so 2>&1 | FileCheck %s --check-prefix=REMARK
// RUN: grep -a -q '"kernels":"ptx"' %t.so
// RUN: grep -a -q '.target sm_90a' %t.so
// NONE: error: expected ptxas in the CUDA toolkit of CUDA_HOME, in PATH or in /usr/local/cuda, but got none
// REMARK: remark: no ptxas was found: kernels are embedded as PTX, which the driver compiles whenever it loads them

// It can be asked for too, and then is no news.

// RUN: fp8-compile %s --target=sm_90a --kernel-format=ptx -o %t.so 2>&1 | count 0
// RUN: grep -a -q '.target sm_90a' %t.so
// RUN: fp8-compile %s --target=sm_90a -o %t.so
// RUN: grep -a -q '"kernels":"cubin"' %t.so
// RUN: not grep -a -q '.target sm_90a' %t.so

func.func @twice(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %0 = arith.addf %x, %x : tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}
