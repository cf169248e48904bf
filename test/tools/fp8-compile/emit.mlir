// RUN: fp8-compile %s --emit=mlir --recipe=current --compile-to=recipe | FileCheck %s --check-prefix=RECIPE
// RUN: fp8-compile %s --emit=mlir | FileCheck %s --check-prefix=HOST
// RUN: fp8-compile %s --emit=llvm --name=demo | FileCheck %s --check-prefix=LLVM
// RUN: fp8-compile %s --emit=llvm -o %t.ll && FileCheck %s --check-prefix=LLVM-FILE --input-file=%t.ll

// RECIPE: fp8.quantize %{{.*}} recipe(#fp8.current)
// HOST: llvm.func @linear(
// LLVM-DAG: @fp8rt_program = alias {{.*}} @fp8_program_info
// LLVM-DAG: @demo_program = alias {{.*}} @fp8_program_info
// LLVM: define {{.*}}i32 @demo_linear(ptr %0, ptr %1, ptr %2)
// LLVM: call i32 @fp8rt_program_call(
// LLVM-FILE: define {{.*}}i32 @emit_mlir_tmp_linear(

// An object holds what a shared object does; nothing but the interface of the
// header is seen of it.

// RUN: fp8-compile %s --emit=obj --recipe=current --name=demo -o %t.o
// RUN: llvm-nm --extern-only --defined-only --format=just-symbols %t.o | FileCheck %s --check-prefix=NAMES
// RUN: FileCheck %s --check-prefix=HEADER --input-file=%t.h
// NAMES-NOT: {{.}}
// NAMES: {{^}}demo_linear{{$}}
// NAMES-NEXT: {{^}}demo_program{{$}}
// NAMES-NEXT: {{^}}fp8rt_program{{$}}
// NAMES-NOT: {{.}}
// HEADER: fp8rt_status demo_linear(

// All kernels of a program are one module, which is one file for the assembler
// and the driver: generated ones, whose math is approximate, and those of loops,
// which set amaxes to 0.

// RUN: fp8-compile %s --target=sm_90a --recipe=current --emit=ptx -o %t.ptx
// RUN: FileCheck %s --check-prefix=PTX --input-file=%t.ptx
// PTX:      .version
// PTX-NOT:  .version
// PTX:      .target sm_90a
// PTX-NOT:  .target
// PTX:      .entry fp8_matmul_sm90a_
// PTX-NOT:  .version
// PTX:      .entry fill_
// PTX-NOT:  .version

func.func @linear(%x: tensor<32x256xbf16>, %w: tensor<256x64xbf16>) -> tensor<32x64xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<32x64xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<32x64xf32>) -> tensor<32x64xf32>
  %y = linalg.matmul ins(%x, %w : tensor<32x256xbf16>, tensor<256x64xbf16>)
                     outs(%zeros : tensor<32x64xf32>) -> tensor<32x64xf32>
  return %y : tensor<32x64xf32>
}
