// One row of each batch: its codes and factors, and a product of it.
// RUN: %python %S/../Integration/CUDA/Inputs/tensors.py %t.in x=bf16:3x1x32 w=bf16:3x32x16
// RUN: fp8-run %s --recipe=rowwise --inputs=%t.in --target=sm_90a --device=emulator --check=all --compare=cpu --accumulate=tensor-core --tolerance=0 | FileCheck %s
// RUN: env FP8_EMULATOR_ARCH=100 fp8-run %s --recipe=rowwise --inputs=%t.in --target=sm_100a --device=emulator --check=all --compare=cpu --accumulate=tensor-core --tolerance=0 | FileCheck %s
// REQUIRES: linker
// UNSUPPORTED: sanitizers

// CHECK: q: {{.*}} 0 of 96 elements differ
// CHECK: s: {{.*}} 0 of 3 elements differ
// CHECK: y: {{.*}} 0 of 48 elements differ
func.func @f(%x: tensor<3x1x32xbf16> {fp8.name = "x"}, %w: tensor<3x32x16xbf16> {fp8.name = "w"})
    -> (tensor<3x1x32xf8E4M3FN> {fp8.name = "q"}, tensor<3x1x1xf32> {fp8.name = "s"}, tensor<3x1x16xf32> {fp8.name = "y"}) {
  %q = fp8.quantize %x recipe(#fp8.rowwise) : tensor<3x1x32xbf16> -> !fp8.scaled<3x1x32xf8E4M3FN, block = [1, 1, *], scale = f32>
  %c, %s = fp8.disassemble %q : !fp8.scaled<3x1x32xf8E4M3FN, block = [1, 1, *], scale = f32>
  %zero = arith.constant dense<0.0> : tensor<3x1x16xf32>
  %y = linalg.batch_matmul {fp8.name = "l"} ins(%x, %w : tensor<3x1x32xbf16>, tensor<3x32x16xbf16>) outs(%zero : tensor<3x1x16xf32>) -> tensor<3x1x16xf32>
  return %c, %s, %y : tensor<3x1x32xf8E4M3FN>, tensor<3x1x1xf32>, tensor<3x1x16xf32>
}
