// FP8_POISON fills what a program allocates, on any device; not what is to be zero, nor under an emulator that looks for
// memory that nobody writes.
// RUN: %python %S/../Integration/CUDA/Inputs/tensors.py %t.in x=f32:3x1x64
// RUN: rm -f %t.trace && env FP8_EMULATOR_TRACE=%t.trace fp8-run %s --inputs=%t.in --target=sm_90a --device=emulator --compare=cpu
// RUN: FileCheck %s --input-file=%t.trace --check-prefix=PLAIN
// RUN: rm -f %t.trace && env FP8_EMULATOR_TRACE=%t.trace FP8_POISON=0 fp8-run %s --inputs=%t.in --target=sm_90a --device=emulator --compare=cpu
// RUN: FileCheck %s --input-file=%t.trace --check-prefix=PLAIN
// RUN: rm -f %t.trace && env FP8_EMULATOR_TRACE=%t.trace FP8_POISON=1 fp8-run %s --inputs=%t.in --target=sm_90a --device=emulator --compare=cpu
// RUN: FileCheck %s --input-file=%t.trace --check-prefix=POISON
// RUN: rm -f %t.trace && env FP8_EMULATOR_TRACE=%t.trace FP8_POISON=1 fp8-run %s --inputs=%t.in --target=sm_90a --device=emulator --check=unwritten
// RUN: FileCheck %s --input-file=%t.trace --check-prefix=PLAIN
// REQUIRES: linker
// UNSUPPORTED: sanitizers

// PLAIN-NOT: cuMemsetD8Async
// POISON:      cuMemAllocFromPoolAsync
// POISON-NEXT: cuMemsetD8Async
// POISON:      cuLaunchKernelEx
#id = affine_map<(b, m, k) -> (b, m, k)>
func.func @main(%x: tensor<3x1x64xf32> {fp8.name = "x"}) -> (tensor<3x1x64xf32> {fp8.name = "y"}) {
  %empty = tensor.empty() : tensor<3x1x64xf32>
  %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x : tensor<3x1x64xf32>) outs(%empty : tensor<3x1x64xf32>) {
  ^bb0(%v: f32, %o: f32):
    %twice = arith.addf %v, %v : f32
    linalg.yield %twice : f32
  } -> tensor<3x1x64xf32>
  return %y : tensor<3x1x64xf32>
}
